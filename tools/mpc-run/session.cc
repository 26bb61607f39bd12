#include "tools/mpc-run/session.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/context_fields.h"
#include "frontend/state/package_state.h"
#include "kernels/cpu/kernel.h"
#include "runtime/choose_kernels.h"
#include "runtime/scaler_field.h"
#include "tools/mpc-run/batches.h"
#include "tools/mpc-run/loss_reader.h"
#include "tools/support/digit_data.h"
#include "tools/support/launch_times.h"
#include "tools/support/stopwatch.h"

namespace mpc::tools {
namespace {

constexpr char kTrainStep[] = "train_step";
constexpr char kPredict[] = "predict";

runtime::LoadOptions LoadOptionsOf(const RunOptions& options) {
  runtime::LoadOptions load;
  load.graph = options.graph.value_or(true);
  load.branches = static_cast<int>(options.branches.value_or(load.branches));
  return load;
}

std::string DeviceText(const std::string& device, const std::string& arch) {
  return arch.empty() ? absl::StrCat("\"", device, "\"") : absl::StrCat("\"", device, "\" (", arch, ")");
}

/// The device that alone has the field of the context called `name`.
std::string DeviceOfField(std::string_view name) {
  std::string device;
  const ContextOptions defaults;
  VisitContext(defaults, [&](const ContextField& field, const auto&) {
    if (name == field.name) device = field.only_on;
  });
  return device;
}

std::vector<absl::Span<const std::uint8_t>> BytesOf(const data::Row& row) {
  std::vector<absl::Span<const std::uint8_t>> bytes;
  for (const Tensor& tensor : row) bytes.push_back(tensor.bytes());
  return bytes;
}

/// Counts in `result` what is right of `predictions`, lines of `classes` numbers; the first have a label each. Errors:
/// fewer lines than labels.
absl::Status Compare(const std::vector<float>& predictions, std::int64_t classes, const Tensor& labels,
                     PredictResult* result) {
  const std::int64_t lines = static_cast<std::int64_t>(predictions.size()) / std::max<std::int64_t>(classes, 1);
  if (lines < labels.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the Program predicts ", lines, " lines of ", classes,
                                                   " numbers for ", labels.size(),
                                                   " labels of the data: a label needs a line"));
  }
  auto line = predictions.begin();
  for (const std::int32_t label : labels.data<std::int32_t>()) {
    const auto end = line + static_cast<std::ptrdiff_t>(classes);
    result->right += std::max_element(line, end) - line == label;
    line = end;
  }
  result->labels += labels.size();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const RunOptions& options, runtime::Package package) {
  auto session = std::unique_ptr<Session>(new Session(options, std::move(package)));
  if (absl::Status status = session->CheckDevice(); !status.ok()) return status;
  if (options.threads > 0) cpu::SetNumThreads(static_cast<int>(options.threads));
  const runtime::Program& first = session->package_.programs.front();
  absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(first.device);
  if (!device.ok()) {
    return absl::Status(device.status().code(),
                        absl::StrCat(options.path, " was compiled for ", DeviceText(first.device, first.arch), ": ",
                                     device.status().message()));
  }
  session->device_ = *device;
  if (const std::vector<TensorSpec> inputs = InputSpecs(first); !inputs.empty() && !inputs[0].shape.empty()) {
    session->batch_size_ = inputs[0].shape[0];
  }

  const Clock::time_point begin = Clock::now();
  std::optional<std::uint64_t> seed;
  if (options.seed.has_value()) seed = static_cast<std::uint64_t>(*options.seed);
  absl::StatusOr<runtime::StateStore> state = MakeInitialState(session->package_, seed);
  if (!state.ok()) return state.status();
  session->state_ = *std::move(state);
  if (!options.load_state_path.empty()) {
    const absl::StatusOr<std::vector<std::string>> unknown = LoadState(options.load_state_path, session->state_);
    if (!unknown.ok()) return unknown.status();
    if (!unknown->empty()) {
      std::cerr << "remark: " << options.load_state_path
                << " also holds what no Program uses: " << absl::StrJoin(*unknown, ", ") << "\n";
    }
    // A seed that is given goes before that of the file.
    if (seed.has_value()) {
      if (absl::Status status = SetSeedOfState(*seed, session->state_); !status.ok()) return status;
    }
  }
  if (options.steps > 0 || options.load_only) {
    runtime::LoadOptions load = LoadOptionsOf(options);
    load.steps_per_launch = static_cast<int>(options.steps_per_launch);
    absl::StatusOr<std::unique_ptr<runtime::Executable>> train = session->Load(kTrainStep, load);
    if (!train.ok()) return train.status();
    session->train_ = *std::move(train);
    if (session->train_->program().outputs.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(options.path, ": \"", kTrainStep, "\" tells no loss"));
    }
  }
  if (options.predict) {
    absl::StatusOr<std::unique_ptr<runtime::Executable>> predict = session->Load(kPredict, LoadOptionsOf(options));
    if (!predict.ok()) return predict.status();
    session->predict_ = *std::move(predict);
    if (absl::Status status = session->CheckPredictions(); !status.ok()) return status;
  }
  session->load_seconds_ = SecondsSince(begin);
  return session;
}

absl::Status Session::CheckDevice() const {
  const runtime::Program& first = package_.programs.front();
  if (!options_.device.empty() && options_.device != first.device) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.path, " was compiled for device ", DeviceText(first.device, first.arch), ", not for \"",
        options_.device, "\"; `mpc-train --emit` with --device=", options_.device, " makes a file for that"));
  }
  struct DeviceFlag {
    bool given;
    const char *flag, *field;
  };
  for (const DeviceFlag& each : {DeviceFlag{options_.graph.has_value(), "--graph", "graph"},
                                 DeviceFlag{options_.steps_per_launch > 1, "--steps-per-launch", "steps_per_launch"},
                                 DeviceFlag{options_.branches.has_value(), "--branches", "graph"},
                                 DeviceFlag{options_.allow_winograd, "--allow-winograd", "allow_winograd"}}) {
    const std::string device = DeviceOfField(each.field);
    if (!each.given || first.device == device) continue;
    return absl::InvalidArgumentError(absl::StrCat(each.flag, " is an option of device \"", device, "\"; ",
                                                   options_.path, " was compiled for \"", first.device, "\""));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<runtime::Executable>> Session::Load(std::string_view name,
                                                                   const runtime::LoadOptions& load) const {
  const runtime::Program* program = package_.Find(name);
  if (program == nullptr) {
    const std::string names = absl::StrJoin(
        package_.programs, ", ",
        [](std::string* out, const runtime::Program& each) { absl::StrAppend(out, "\"", each.name, "\""); });
    return absl::NotFoundError(
        absl::StrCat(options_.path, " has no program \"", std::string(name), "\"; it has ", names));
  }
  const auto at_file = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(options_.path, ": ", status.message()));
  };
  auto chosen = std::make_shared<runtime::Program>(*program);
  if (options_.tune || options_.allow_winograd || !options_.choice_cache.empty()) {
    // What the Program's maker allowed stays allowed.
    const bool winograd = std::any_of(program->choices.begin(), program->choices.end(),
                                      [](const auto& choice) { return choice.second == "f32 winograd"; });
    const runtime::PlanOptions plan{.tune = options_.tune,
                                    .choice_cache = options_.choice_cache,
                                    .allow_tf32 = program->allow_tf32,
                                    .allow_winograd = winograd || options_.allow_winograd};
    if (absl::Status status = runtime::ChooseKernels(*device_, plan, *chosen); !status.ok()) return at_file(status);
  }
  absl::StatusOr<std::unique_ptr<runtime::Executable>> executable = device_->Load(std::move(chosen), state_, load);
  if (!executable.ok()) return at_file(executable.status());
  return executable;
}

absl::Status Session::CheckPredictions() const {
  const runtime::Program& program = predict_->program();
  const auto refuse = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(options_.path, ": \"", kPredict, "\" ", what,
                                                   "; it must take a batch and give a value or several for each row"));
  };
  if (program.inputs.empty() || InputSpecs(program)[0].shape.empty()) return refuse("takes no rows");
  if (program.outputs.empty()) return refuse("gives nothing");
  const TensorSpec& spec = program.values[program.outputs[0].value].spec;
  const std::int64_t rows = InputSpecs(program)[0].shape[0];
  if (spec.shape.empty() || rows < 1 || spec.shape[0] % rows != 0) {
    return refuse(absl::StrCat("gives ", spec.ToString(), " for ", rows, " rows"));
  }
  return absl::OkStatus();
}

std::uint64_t Session::seed() const {
  if (options_.seed.has_value()) return static_cast<std::uint64_t>(*options_.seed);
  const std::string text(package_.Metadata("seed"));
  std::uint64_t seed = 1;
  return absl::SimpleAtoi(text, &seed) ? seed : 1;
}

// Labels count the classes, and the tokens of a language model the same ones: the last extent of what is predicted.
std::optional<std::int64_t> Session::classes() const {
  const runtime::Program* program = package_.Find(kPredict);
  if (program == nullptr || program->outputs.empty()) return std::nullopt;
  const Shape& shape = program->values[program->outputs[0].value].spec.shape;
  if (shape.empty()) return std::nullopt;
  return shape.back();
}

absl::Status Session::Start(const std::vector<data::Row>& rows, bool timed, TrainResult* result) {
  std::vector<std::vector<absl::Span<const std::uint8_t>>> bytes;
  for (const data::Row& row : rows) bytes.push_back(BytesOf(row));
  if (!timed || options_.times_path.empty()) {
    return train_->RunSteps(std::vector<runtime::StepInputs>(bytes.begin(), bytes.end()));
  }
  for (const auto& inputs : bytes) {
    const absl::StatusOr<std::vector<runtime::InstructionTime>> times = train_->RunTimed(inputs);
    if (!times.ok()) return times.status();
    result->instruction_us.resize(train_->program().step().instructions.size());
    for (const runtime::InstructionTime& time : *times) {
      if (time.instruction >= result->instruction_us.size()) continue;
      result->instruction_us[time.instruction].push_back(time.duration_us);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainResult> Session::Train(std::ostream& progress) {
  absl::StatusOr<std::unique_ptr<BatchSource>> batches =
      MakeTrainingBatches(options_, train_->program(), seed(), classes());
  if (!batches.ok()) return batches.status();
  const std::uint64_t first = train_->steps_started();
  const std::uint64_t end = first + static_cast<std::uint64_t>(options_.steps);
  const std::uint64_t first_timed = first + static_cast<std::uint64_t>(options_.warmup);
  LossReader losses(*train_, options_.print_every, progress);
  TrainResult result;
  result.timed_steps = options_.steps - options_.warmup;
  // Steps whose instructions are timed are waited for.
  LaunchTimes times = options_.times_path.empty() ? LaunchTimes(*train_) : LaunchTimes(/*runs_ahead=*/false);
  Clock::time_point timed_begin = Clock::now();
  for (std::uint64_t started = first; started < end;) {
    if (started == first_timed && started > first) {
      if (absl::Status status = train_->Wait(); !status.ok()) return status;
      timed_begin = Clock::now();
    }
    const bool timed = started >= first_timed;
    if (timed) times.Begin();
    const std::uint64_t limit = timed ? end : first_timed;
    const std::uint64_t count = std::min<std::uint64_t>(limit - started, train_->steps_per_launch());
    std::vector<data::Row> rows;
    for (std::uint64_t i = 0; i < count; ++i) {
      absl::StatusOr<data::Row> row = (*batches)->Next();
      if (!row.ok()) return row.status();
      rows.push_back(*std::move(row));
    }
    // What this launch would push out of the steps that are kept.
    const std::uint64_t started_then = started + count;
    const std::uint64_t kept = train_->steps_kept();
    absl::Status status = losses.ReadUntil(std::min(started, started_then > kept ? started_then - kept : 0));
    if (status.ok()) status = Start(rows, timed, &result);
    if (status.ok()) status = losses.ReadUntil(started);
    if (!status.ok()) return status;
    started = started_then;
    if (timed) times.Add(static_cast<std::int64_t>(count));
  }
  absl::Status status = train_->Wait();
  times.Finish();
  result.step_seconds = times.TakeStepSeconds();
  result.seconds = SecondsSince(timed_begin);
  if (status.ok()) status = losses.ReadUntil(end);
  if (!status.ok()) return status;
  result.losses = losses.TakeLosses();
  return result;
}

absl::StatusOr<PredictResult> Session::Predict() {
  const runtime::Program& program = predict_->program();
  const absl::StatusOr<std::vector<TestBatch>> batches = LoadTestBatches(options_, program, seed(), classes());
  if (!batches.ok()) return batches.status();
  // Its own: a package's other Programs may have other batches.
  const std::int64_t batch_size = std::max<std::int64_t>(InputSpecs(program)[0].shape[0], 1);
  PredictResult result;
  result.note = TestSetNote(options_.data, options_.data_directory);
  const TensorSpec& spec = program.values[program.outputs[0].value].spec;
  std::vector<float> predictions;
  for (const TestBatch& batch : *batches) {
    const Clock::time_point begin = Clock::now();
    if (absl::Status status = predict_->Run(BytesOf(batch.inputs)); !status.ok()) return status;
    const absl::Span<const std::uint8_t> bytes = predict_->output(0);
    if (absl::Status status = predict_->Wait(); !status.ok()) return status;
    result.seconds += SecondsSince(begin);
    const std::vector<float> values = Tensor::FromBytes(spec, bytes.data(), bytes.size()).ToFloats();
    const auto of_rows = static_cast<std::ptrdiff_t>(values.size()) / batch_size * batch.rows;
    if (!options_.predictions_path.empty()) {
      predictions.insert(predictions.end(), values.begin(), values.begin() + of_rows);
    }
    if (batch.labels.defined() && spec.shape.size() == 2) {
      if (absl::Status status = Compare(values, spec.shape[1], batch.labels, &result); !status.ok()) return status;
    }
    result.rows += batch.rows;
  }
  if (options_.predictions_path.empty()) return result;
  // Text has a prediction for each token of a row.
  Shape shape = spec.shape;
  shape[0] = shape[0] / batch_size * result.rows;
  result.predictions = Tensor::From(predictions, shape);
  return result;
}

absl::Status Session::DumpState() const { return SaveState(options_.dump_state_path, state_); }

runtime::MemoryUse Session::memory() const {
  runtime::MemoryUse sum;
  for (const runtime::Executable* executable : {train_.get(), predict_.get()}) {
    if (executable == nullptr) continue;
    const runtime::MemoryUse use = executable->memory();
    sum.arena += use.arena;
    sum.state = std::max(sum.state, use.state);
    sum.other += use.other;
  }
  return sum;
}

double Session::Scalar(const runtime::StateEntry& entry) const {
  std::vector<std::uint8_t> bytes(entry.spec().bytes());
  if (!entry.Read(absl::MakeSpan(bytes)).ok()) return std::nan("");
  return Tensor::FromBytes(entry.spec(), bytes.data(), bytes.size()).TryItem<double>().value_or(std::nan(""));
}

std::int64_t Session::skipped_steps() const {
  std::int64_t skipped = -1;
  for (const std::shared_ptr<runtime::StateEntry>& entry : state_.entries()) {
    if (entry->role() != Role::kScaler || ScalerFieldOf(entry->name()) != ScalerField::kSkipped) continue;
    skipped = std::max<std::int64_t>(skipped, 0) + std::llround(Scalar(*entry));
  }
  return skipped;
}

double Session::loss_scale() const {
  for (const std::shared_ptr<runtime::StateEntry>& entry : state_.entries()) {
    if (entry->role() == Role::kScaler && ScalerFieldOf(entry->name()) == ScalerField::kScale) return Scalar(*entry);
  }
  return 1;
}

}  // namespace mpc::tools
