// Saving and resuming the training of a Model.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/state/checkpoint_environment.h"
#include "frontend/state/checkpoint_file.h"
#include "frontend/state/checkpoint_fit.h"
#include "frontend/train/model_impl.h"

namespace mpc {

using internal::CheckpointFit;
using internal::CheckpointMetadata;
using internal::CompiledStep;
using internal::kTrainStep;
using internal::TextMap;

namespace {

TextMap DescribePrecision(const amp::Precision& precision) {
  const auto flag = [](const std::optional<bool>& value) {
    return !value.has_value() ? std::string() : std::string(*value ? "true" : "false");
  };
  const std::optional<DType>& outputs = precision.cast_model_outputs;
  return {{"level", precision.level},
          {"dtype", precision.level == "O0" ? "f32" : std::string(DTypeName(precision.dtype))},
          {"keep_batchnorm_fp32", flag(precision.keep_batchnorm_fp32)},
          {"master_weights", flag(precision.master_weights)},
          {"cast_model_outputs", outputs.has_value() ? std::string(DTypeName(*outputs)) : ""},
          {"num_losses", absl::StrCat(precision.num_losses)},
          {"allow", absl::StrJoin(precision.lists.allow, ",")},
          {"deny", absl::StrJoin(precision.lists.deny, ",")},
          {"infer", absl::StrJoin(precision.lists.infer, ",")},
          {"clear", absl::StrJoin(precision.lists.clear, ",")}};
}

/// What the compiled step does with each scaler; the rest of a configuration is state.
TextMap DescribeScaling(const std::vector<const LossScaler*>& scalers) {
  TextMap map;
  for (std::size_t i = 0; i < scalers.size(); ++i) {
    const LossScaleConfig& config = scalers[i]->config();
    const std::string loss = scalers.size() == 1 ? "" : absl::StrCat("loss ", i, " ");
    map[loss + "mode"] = std::string(config.mode_name());
    map[loss + "skip"] = config.skip ? "true" : "false";
    map[loss + "unscale"] = config.unscale ? "true" : "false";
  }
  return map;
}

/// Whether an optimizer divides by the scale of one of `scalers`, so that a step does not.
bool OptimizerDivides(const std::vector<const LossScaler*>& scalers) {
  return std::any_of(scalers.begin(), scalers.end(), [](const LossScaler* each) { return !each->config().unscale; });
}

/// Whether a step with this scaling, of DescribeScaling, has a scaler; `skips`: one that skips.
bool HasScaler(const TextMap& scaling, bool skips = false) {
  return std::any_of(scaling.begin(), scaling.end(), [&](const auto& setting) {
    constexpr std::string_view kMode = "mode";
    if (!setting.first.ends_with(kMode) || setting.second == "none") return false;
    if (!skips) return true;
    const auto skip = scaling.find(setting.first.substr(0, setting.first.size() - kMode.size()) + "skip");
    return skip != scaling.end() && skip->second == "true";
  });
}

/// Whether a step with the scaling `own` can go on inside an update that one with the scaling `file` has begun. Only a
/// step with a scaler keeps what it found, and only one that skips keeps what statistics were before the update.
bool ContinuesUpdates(const TextMap& file, const TextMap& own) {
  return HasScaler(file) == HasScaler(own) && (HasScaler(file, /*skips=*/true) || !HasScaler(own, /*skips=*/true));
}

/// `micro_batches`: batches that make one update, in all processes.
TextMap DescribeStep(const ModelOptions& options, std::int64_t micro_batches) {
  const auto number = [](const std::optional<double>& value) {
    return value.has_value() ? absl::StrCat(*value) : std::string();
  };
  return {{"accumulation_steps", absl::StrCat(micro_batches)},
          {"clip_global_norm", number(options.clip_global_norm)},
          {"clip_value", number(options.clip_value)}};
}

void Append(std::vector<std::string>& to, const std::string& prefix, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) to.push_back(absl::StrCat(prefix, line));
}

/// What to do where the file and the Model have other Parameters frozen; empty where they have not.
std::string FreezingHint(const CheckpointFit& fit) {
  constexpr char kWeights[] = "LoadParamIntoNet(network, path) begins from its weights";
  if (fit.lacks_slots && fit.leaves_slots) {
    return absl::StrCat("; the file was trained with other parameters frozen than are frozen here: ", kWeights);
  }
  if (fit.lacks_slots) {
    return absl::StrCat("; the file was trained with the parameters of these slots frozen: ", kWeights);
  }
  if (!fit.leaves_slots) return "";
  return absl::StrCat(
      "; the parameters of these slots are frozen here, and the file trained them: freeze what the file ",
      "has frozen, or ", kWeights);
}

}  // namespace

CheckpointMetadata Model::Impl::Describe(absl::Span<const Parameter> state) const {
  CheckpointMetadata metadata;
  metadata.model = cells.network()->TypeName();
  metadata.optimizer = cells.NamesOfOptimizers();
  position.DescribeTo(metadata, processes);
  metadata.amp = DescribePrecision(precision);
  metadata.loss_scale = DescribeScaling(scalers.all());
  metadata.step = DescribeStep(options, updates.all());
  metadata.environment = internal::DescribeEnvironment(device());
  for (const Parameter& entry : state) metadata.roles[entry.name()] = entry.entry()->role();
  // What has not been compiled again is as the last checkpoint says.
  resumed.AddTo(metadata);
  metadata.callbacks = callback_states.Now();
  if (metadata.position.step_in_epoch > 0) metadata.last_step = callback_states.LastStep();
  if (const compiler::PrecisionMap* decided = decision.of_training(); decided != nullptr) metadata.precision = *decided;
  for (const compiler::CompileResult* result : programs.compiled()) {
    const runtime::Program& program = result->program;
    if (program.name != kTrainStep && program.name != internal::kAccumulateStep) continue;
    // The first Program's: of full batches, wherever this process began.
    if (metadata.inputs.empty()) {
      for (const runtime::NamedValue& input : program.inputs) {
        metadata.inputs.emplace_back(input.name, program.values[input.value].spec);
      }
    }
    metadata.choices[internal::ProgramSignature(program)] = TextMap(program.choices.begin(), program.choices.end());
  }
  return metadata;
}

void Model::Impl::TraceState(const CheckpointMetadata& metadata) {
  if (cells.user_step() == nullptr || metadata.inputs.empty()) return;
  std::vector<TensorSpec> specs;
  std::vector<std::string> names;
  for (const auto& [name, spec] : metadata.inputs) {
    names.push_back(name);
    specs.push_back(spec);
  }
  if (cells.step_arity() >= 0 && cells.step_arity() != static_cast<int>(specs.size())) return;
  cells.step()->SetTrain(true);
  std::vector<Parameter> used;
  internal::StepFacts facts;
  const absl::StatusOr<compiler::Module> module =
      internal::TraceStep(cells.step(), cells.StepFunction(), specs, TrainOptions(names), &used, &facts);
  // A step that does not take the file's inputs is another one: comparing the entries says in which way.
  if (!module.ok()) return;
  scalers.NoteCalled(facts);
  learned.NoteTraced(std::move(used), std::move(facts));
}

absl::Status Model::SaveCheckpoint(const std::string& path) const {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  const internal::UpdateBatches& updates = impl_->updates;
  if (updates.are_whole() && !updates.CompleteBehind(impl_->position.in_run().step_in_epoch)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": step ", impl_->position.in_run().step_in_epoch % updates.of_process, " of ", updates.of_process,
        " of an update has ended, and where training is data parallel a checkpoint has complete updates; save when ",
        "global_step has moved"));
  }
  // All processes have the same state, and rank 0 writes it.
  if (!impl_->processes.is_first()) return absl::OkStatus();
  const std::vector<Parameter> state = impl_->KeptState(*this);
  if (absl::Status status = InitialiseParameters(state); !status.ok()) return status;
  // What was written inside an update stays where a run that goes on at the file skips it.
  if (!updates.are_whole()) {
    if (absl::Status kept = impl_->pass_state->KeepWritten(1); !kept.ok()) return kept;
  }
  Safetensors content;
  for (const Parameter& entry : state) {
    absl::StatusOr<Tensor> value = entry.Value();
    if (!value.ok()) return value.status();
    content.tensors.emplace_back(entry.name(), *std::move(value));
  }
  content.metadata = internal::FormatMetadata(impl_->Describe(state));
  return internal::WriteCheckpointFile(path, std::move(content));
}

absl::Status Model::Impl::CheckFit(const std::string& path, const CheckpointMetadata& metadata,
                                   const CheckpointMetadata& own, internal::CheckpointFit& fit) const {
  const bool same_optimizer = metadata.optimizer == own.optimizer;
  const bool freezes_alone = same_optimizer && !fit.weights_only;
  if (cells.step() != nullptr && !same_optimizer && !fit.weights_only) {
    fit.problems.insert(fit.problems.begin(),
                        absl::StrCat("the optimizer was ", metadata.optimizer, ", here it is ", own.optimizer));
  }
  for (const auto& [name, value] : fit.accumulators) {
    if (pass_state->FindDerived(name) != nullptr) {
      fit.problems.push_back(absl::StrCat("'", name, "' is gathered over steps in the file, derived in this Model"));
    }
  }
  if (fit.problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, " does not fit this Model of ", own.model, ":\n  ", absl::StrJoin(fit.problems, "\n  "),
      "\nnothing was loaded",
      fit.weights_only ? "; the file has no optimizer state: LoadParamIntoNet(network, path) loads its weights" : "",
      freezes_alone ? FreezingHint(fit) : ""));
}

void Model::Impl::WarnOfChoices(const runtime::Program& program) const {
  if (const std::string warning = resumed.WarningOf(program); !warning.empty()) remarks.Say(warning);
}

void Model::Impl::ContinueFrom(const CheckpointMetadata& metadata, bool same_level, bool continue_run) {
  position.Continue(metadata, processes, updates, continue_run);
  callback_states.Take(metadata, continue_run);
  resumed.Take(metadata, same_level);
  if (!resumed.precision().empty()) decision.Keep(resumed.precision(), /*training=*/true);
  scalers.NoteOverflow(false);
  update_losses.Forget();
  remarks.Forget(kLossTopic);
  for (const CompiledStep* program : programs.all()) WarnOfChoices(program->program());
}

absl::StatusOr<ResumeReport> Model::LoadCheckpoint(const std::string& path, const ResumeOptions& options) {
  Impl& self = *impl_;
  const std::scoped_lock lock(self.mutex);
  if (!self.status.ok()) return self.status;
  if (absl::Status free = self.phase.CheckNoRun("LoadCheckpoint"); !free.ok()) return free;
  absl::StatusOr<Safetensors> content = internal::ReadCheckpointFile(path);
  if (!content.ok()) return content.status();
  if (!internal::IsTrainingCheckpoint(content->metadata)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is no checkpoint of training: it holds no optimizer state, counters or position in the data. ",
        "LoadParamIntoNet(network, path) loads its weights"));
  }
  absl::StatusOr<CheckpointMetadata> metadata = internal::ParseMetadata(content->metadata, path);
  if (!metadata.ok()) return metadata.status();
  if (absl::Status status = self.TakeWholeUpdates(path, *metadata, *content); !status.ok()) return status;
  self.TraceState(*metadata);
  const std::vector<Parameter> state = self.KeptState(*this);
  const CheckpointMetadata own = self.Describe(state);
  const bool same_level = metadata->amp == own.amp;
  const bool same_accumulation = metadata->step["accumulation_steps"] == own.step.at("accumulation_steps") &&
                                 ContinuesUpdates(metadata->loss_scale, own.loss_scale);
  CheckpointFit fit = internal::FitCheckpoint(state, *content, metadata->roles,
                                              {.same_level = same_level,
                                               .same_scaler = metadata->loss_scale == own.loss_scale,
                                               .optimizer_divides = OptimizerDivides(self.scalers.all()),
                                               .same_accumulation = same_accumulation,
                                               .stores_low = !self.precision.master_weights,
                                               .trains = self.cells.step() != nullptr});
  if (absl::Status status = self.CheckFit(path, *metadata, own, fit); !status.ok()) return status;
  for (const auto& [name, value] : fit.accumulators) {
    absl::StatusOr<Parameter> accumulator = self.pass_state->Accumulator(name, value->spec());
    if (!accumulator.ok()) return accumulator.status();
    fit.assignments.emplace_back(*accumulator, *value);
  }

  ResumeReport report;
  report.global_step = metadata->global_step;
  report.position = metadata->position;
  report.loaded = fit.loaded;
  Append(report.differences, "model: ", internal::Differences({{"class", metadata->model}}, {{"class", own.model}}));
  Append(report.differences, "amp ", internal::Differences(metadata->amp, own.amp));
  if (!same_level) report.differences.emplace_back("training resumes from the f32 masters at the new precision");
  Append(report.differences, "loss scale ", internal::Differences(metadata->loss_scale, own.loss_scale));
  Append(report.differences, "", internal::Differences(metadata->step, own.step));
  Append(report.differences, "", internal::Differences(metadata->environment, own.environment));
  Append(report.differences, "", fit.differences);

  for (auto& [entry, value] : fit.assignments) {
    if (absl::Status status = entry.SetData(value); !status.ok()) return status;
  }
  self.pass_state->NoteVersionsOf(state);
  self.ContinueFrom(*metadata, same_level, options.continue_run);
  return report;
}

}  // namespace mpc
