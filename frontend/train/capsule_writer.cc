#include "frontend/train/capsule_writer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/driver/compiler.h"
#include "frontend/distributed/exchange.h"
#include "frontend/graph/pass_state.h"
#include "frontend/state/capsule_layout.h"
#include "frontend/train/capsule_gather.h"
#include "frontend/train/update_batches.h"
#include "runtime/scaler_field.h"

namespace mpc::internal {
namespace {

absl::StatusOr<Tensor> Copy(const runtime::StateEntry& entry) {
  std::vector<std::uint8_t> bytes(entry.spec().bytes());
  if (absl::Status status = entry.Read(absl::MakeSpan(bytes)); !status.ok()) return status;
  return Tensor::FromBytes(entry.spec(), bytes.data(), bytes.size());
}

/// Whether a step that overflows leaves parameters, slots and statistics as they were.
bool HoldsWhenBad(const CompiledStep& step) {
  if (!step.facts().wrapped) return false;
  const auto& outputs = step.program().outputs;
  // Of several scalers some may skip while others do not.
  const bool has_one =
      std::any_of(outputs.begin(), outputs.end(), [](const auto& each) { return each.name == "finite"; });
  const auto skips = [](const Parameter& each) {
    if (each.entry()->role() != Role::kScaler || ScalerFieldOf(each.name()) != ScalerField::kSkip) return true;
    const absl::StatusOr<Tensor> value = each.Value();
    return value.ok() && value->Item<std::int32_t>() != 0;
  };
  return has_one && std::all_of(step.state().begin(), step.state().end(), skips);
}

bool IsHeld(Role role) { return role == Role::kParameter || role == Role::kSlot || role == Role::kStatistic; }

/// Whether the next run of `program` is the first one of a step. It is not where micro-batches are accumulated.
absl::StatusOr<bool> BeginsStep(const CompiledStep& program) {
  for (const Parameter& each : program.state()) {
    if (each.name() != kMicroStep) continue;
    const absl::StatusOr<Tensor> number = each.Value();
    if (!number.ok()) return number.status();
    return number->Item<std::int64_t>() == 0;
  }
  return true;
}

bool IsWritten(const runtime::Program& program, std::string_view name) {
  return std::any_of(program.state.begin(), program.state.end(),
                     [&](const runtime::StateBinding& each) { return each.name == name && each.written; });
}

/// Whether `last` runs the last micro-batch of a step whose others run `earlier`.
bool CompletesAfter(const CompiledStep& earlier, const CompiledStep& last) {
  const runtime::Program& a = earlier.program();
  const runtime::Program& b = last.program();
  return a.name == kAccumulateStep && b.name == kTrainStep &&
         std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                    [&](const runtime::NamedValue& of_a, const runtime::NamedValue& of_b) {
                      return of_a.name == of_b.name && a.values[of_a.value].spec == b.values[of_b.value].spec;
                    });
}

std::vector<std::uint64_t> VersionsOf(const CompiledStep& program) {
  std::vector<std::uint64_t> versions;
  for (const Parameter& each : program.state()) versions.push_back(each.entry()->version());
  return versions;
}

bool HasFiniteLoss(const StepResults& results) {
  const std::vector<float> losses = results.Output(0).ToFloats();
  return std::all_of(losses.begin(), losses.end(), [](float loss) { return std::isfinite(loss); });
}

/// Adds a run of its Program to `capsule`, which has as many as `capsule.runs` says.
void Append(const StepResults& results, const std::vector<Tensor>& columns, StepCapsule& capsule) {
  const runtime::Program& program = results.step().program();
  for (std::size_t i = 0; i < program.inputs.size() && i < columns.size(); ++i) {
    capsule.batch.emplace_back(NameInRun(program.inputs[i].name, capsule.runs), columns[i]);
  }
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    capsule.record.emplace_back(NameInRun(program.outputs[i].name, capsule.runs), results.Output(i));
  }
  ++capsule.runs;
}

const char* ReasonOf(std::int64_t at) { return at > 0 ? "asked for" : "not finite"; }

}  // namespace

absl::Status CapsuleWriter::Before(const CompiledStep& program, std::int64_t step) {
  if (!Watches(step)) return absl::OkStatus();
  const absl::StatusOr<bool> begins = BeginsStep(program);
  if (!begins.ok()) return begins.status();
  if (*begins || pending_.program == nullptr) {
    pending_ = {};
    pending_.is_whole = *begins;
    return CopyState(program);
  }
  if (&program != pending_.program && !CompletesAfter(*pending_.program, program)) {
    pending_.problem = kDifferentPrograms;
  } else if (VersionsOf(*pending_.program) != pending_.versions) {
    pending_.problem = "its state was changed from outside between two of its micro-batches";
  } else if (&program != pending_.program) {
    return CopyState(program);
  }
  return absl::OkStatus();
}

absl::Status CapsuleWriter::CopyState(const CompiledStep& program) {
  // A step that skips goes back to what its first micro-batch began from. That may lie before the run of this Model.
  const bool holds = pending_.is_whole && at_ == 0 && HoldsWhenBad(program);
  for (const Parameter& parameter : program.state()) {
    if (holds && IsHeld(parameter.entry()->role())) continue;
    if (!IsWritten(program.program(), parameter.name()) || FindTensor(pending_.before, parameter.name()) != nullptr) {
      continue;
    }
    absl::StatusOr<Tensor> value = Copy(*parameter.entry());
    if (!value.ok()) return value.status();
    pending_.before.emplace_back(parameter.name(), *std::move(value));
  }
  return absl::OkStatus();
}

void CapsuleWriter::Between(const StepResults& results, std::int64_t step, const std::vector<Tensor>& columns) {
  if (!Watches(step)) return;
  pending_.program = &results.step();
  Append(results, columns, pending_.earlier);
  pending_.versions = VersionsOf(results.step());
  pending_.is_bad |= !HasFiniteLoss(results);
}

bool CapsuleWriter::WantsAlone(const StepResults& results, bool overflow) const {
  if (overflow || HoldsWhenBad(results.step())) return overflow;
  return pending_.is_bad || !HasFiniteLoss(results);
}

absl::StatusOr<bool> CapsuleWriter::Wants(const StepResults& results, std::int64_t step, bool overflow) const {
  if (!Watches(step)) return false;
  if (at_ > 0) return true;
  const bool own = WantsAlone(results, overflow);
  if (!IsShared()) return own;
  // The loss of one rank may be bad while the others' are fine.
  const absl::StatusOr<std::int64_t> any = distributed::AgreeOnMaximum(*group_, own ? 1 : 0);
  if (!any.ok()) return any.status();
  return *any > 0;
}

absl::StatusOr<StepCapsule> CapsuleWriter::Make(const StepResults& results, std::int64_t step,
                                                const std::vector<Tensor>& columns) const {
  if (!pending_.problem.empty()) return absl::UnimplementedError(pending_.problem);
  // A step that accumulates has held the runs before this one.
  StepCapsule capsule = pending_.earlier;
  capsule.step = step;
  capsule.reason = ReasonOf(at_);
  capsule.program = results.step().compiled().program;
  std::vector<Parameter> state = results.step().state();
  if (pending_.program != nullptr && pending_.program != &results.step()) {
    capsule.accumulating = pending_.program->compiled().program;
    const std::vector<Parameter>& more = pending_.program->state();
    state.insert(state.end(), more.begin(), more.end());
  }
  for (const runtime::StateBinding& binding : StateOf(capsule)) {
    const auto entry =
        std::find_if(state.begin(), state.end(), [&](const Parameter& each) { return each.name() == binding.name; });
    if (entry == state.end()) {
      return absl::InternalError(absl::StrCat("the step has no state \"", binding.name, "\""));
    }
    const Tensor* const kept = FindTensor(pending_.before, binding.name);
    absl::StatusOr<Tensor> value = kept != nullptr ? absl::StatusOr<Tensor>(*kept) : Copy(*entry->entry());
    if (!value.ok()) return value.status();
    capsule.state.emplace_back(binding.name, *std::move(value));
    if (!binding.written) continue;
    absl::StatusOr<std::string> checksum = StateChecksum(*entry->entry());
    if (!checksum.ok()) return checksum.status();
    capsule.after[binding.name] = *std::move(checksum);
  }
  Append(results, columns, capsule);
  return capsule;
}

absl::Status CapsuleWriter::WriteFile(StepCapsule capsule, const std::function<absl::StatusOr<CapsuleSource>()>& source,
                                      const std::function<void(const std::string&)>& say) const {
  absl::StatusOr<CapsuleSource> made = source();
  if (!made.ok()) return made.status();
  capsule.traced = std::move(made->traced);
  capsule.options = std::move(made->options);
  capsule.origin = std::move(made->origin);
  for (runtime::Program* program :
       {&capsule.program, capsule.accumulating.has_value() ? &*capsule.accumulating : nullptr}) {
    if (program == nullptr) continue;
    if (absl::Status status = compiler::LinkGeneratedCode(*program); !status.ok()) return status;
  }
  const absl::StatusOr<CapsuleSizes> sizes = SizesOf(capsule);
  if (!sizes.ok()) return sizes.status();
  const std::string runs = capsule.ranks > 1 ? absl::StrCat(", ", DescribeRuns(capsule)) : "";
  say(absl::StrCat("capsule of step ", capsule.step, " (", capsule.reason, "): writing ", sizes->ToString(), runs,
                   " to ", path_));
  return WriteStepCapsule(path_, capsule);
}

absl::Status CapsuleWriter::Write(const StepResults& results, std::int64_t step, const std::vector<Tensor>& columns,
                                  const std::function<absl::StatusOr<CapsuleSource>()>& source,
                                  const std::function<void(const std::string&)>& say) {
  absl::StatusOr<StepCapsule> capsule = Make(results, step, columns);
  pending_ = {};
  if (IsShared()) {
    if (absl::Status status = GatherCapsule(*group_, capsule); !status.ok()) return status;
  }
  // Another bad step may be one that can be kept. All ranks have the same error.
  waits_ = at_ == 0 && absl::IsUnimplemented(capsule.status());
  if (IsShared() && group_->rank() > 0) return absl::OkStatus();
  const absl::Status written = capsule.ok() ? WriteFile(*std::move(capsule), source, say) : capsule.status();
  if (!written.ok()) {
    say(absl::StrCat("warning: no capsule of step ", step, ": ", written.message(), "; training goes on"));
  }
  return absl::OkStatus();
}

}  // namespace mpc::internal
