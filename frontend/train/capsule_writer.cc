#include "frontend/train/capsule_writer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/driver/compiler.h"
#include "frontend/graph/pass_state.h"
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
    return CopyState(program, *begins);
  }
  if (&program != pending_.program) {
    pending_.problem = "its micro-batches ran different Programs, as those of several shapes do";
  } else if (VersionsOf(program) != pending_.versions) {
    pending_.problem = "its state was changed from outside between two of its micro-batches";
  }
  return absl::OkStatus();
}

absl::Status CapsuleWriter::CopyState(const CompiledStep& program, bool begins) {
  // A step that skips goes back to what its first micro-batch began from. That may lie before the run of this Model.
  const bool holds = begins && at_ == 0 && HoldsWhenBad(program);
  for (const Parameter& parameter : program.state()) {
    if (holds && IsHeld(parameter.entry()->role())) continue;
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

bool CapsuleWriter::Wants(const StepResults& results, std::int64_t step, bool overflow) const {
  if (!Watches(step)) return false;
  if (at_ > 0) return true;
  if (overflow || HoldsWhenBad(results.step())) return overflow;
  return pending_.is_bad || !HasFiniteLoss(results);
}

absl::StatusOr<StepCapsule> CapsuleWriter::Make(const StepResults& results, std::int64_t step,
                                                const std::vector<Tensor>& columns, CapsuleSource source) const {
  const CompiledStep& compiled = results.step();
  // A step that accumulates has held the runs before this one.
  StepCapsule capsule = pending_.earlier;
  capsule.step = step;
  capsule.reason = ReasonOf(at_);
  capsule.program = compiled.compiled().program;
  if (absl::Status status = compiler::LinkGeneratedCode(capsule.program); !status.ok()) return status;
  capsule.traced = std::move(source.traced);
  capsule.options = std::move(source.options);
  capsule.origin = std::move(source.origin);
  const StepCapsule::NamedTensors& before = pending_.before;
  for (const runtime::StateBinding& binding : capsule.program.state) {
    if (binding.role == Role::kDerived) continue;
    const auto entry = std::find_if(compiled.state().begin(), compiled.state().end(),
                                    [&](const Parameter& each) { return each.name() == binding.name; });
    if (entry == compiled.state().end()) {
      return absl::InternalError(absl::StrCat("the step has no state \"", binding.name, "\""));
    }
    const auto kept =
        std::find_if(before.begin(), before.end(), [&](const auto& each) { return each.first == binding.name; });
    absl::StatusOr<Tensor> value = kept != before.end() ? absl::StatusOr<Tensor>(kept->second) : Copy(*entry->entry());
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

void CapsuleWriter::Write(const StepResults& results, std::int64_t step, const std::vector<Tensor>& columns,
                          const std::function<absl::StatusOr<CapsuleSource>()>& source,
                          const std::function<void(const std::string&)>& say) {
  // Another bad step may be one that can be kept.
  waits_ = at_ == 0 && !pending_.problem.empty();
  const auto write = [&]() -> absl::Status {
    if (!pending_.problem.empty()) return absl::UnimplementedError(pending_.problem);
    absl::StatusOr<CapsuleSource> made = source();
    if (!made.ok()) return made.status();
    const absl::StatusOr<StepCapsule> capsule = Make(results, step, columns, *std::move(made));
    if (!capsule.ok()) return capsule.status();
    const absl::StatusOr<CapsuleSizes> sizes = SizesOf(*capsule);
    if (!sizes.ok()) return sizes.status();
    say(absl::StrCat("capsule of step ", step, " (", capsule->reason, "): writing ", sizes->ToString(), " to ", path_));
    return WriteStepCapsule(path_, *capsule);
  };
  if (const absl::Status status = write(); !status.ok()) {
    say(absl::StrCat("warning: no capsule of step ", step, ": ", status.message(), "; training goes on"));
  }
  pending_ = {};
}

}  // namespace mpc::internal
