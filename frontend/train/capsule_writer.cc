#include "frontend/train/capsule_writer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/driver/compiler.h"
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

const char* ReasonOf(std::int64_t at) { return at > 0 ? "asked for" : "not finite"; }

}  // namespace

absl::Status CapsuleWriter::Before(const CompiledStep& program, std::int64_t step) {
  if (!waits_ || (at_ > 0 && step != at_)) return absl::OkStatus();
  const bool holds = at_ == 0 && HoldsWhenBad(program);
  before_.clear();
  for (const Parameter& parameter : program.state()) {
    if (holds && IsHeld(parameter.entry()->role())) continue;
    absl::StatusOr<Tensor> value = Copy(*parameter.entry());
    if (!value.ok()) return value.status();
    before_.emplace_back(parameter.name(), *std::move(value));
  }
  return absl::OkStatus();
}

bool CapsuleWriter::Wants(const StepResults& results, std::int64_t step, bool overflow) const {
  if (!waits_) return false;
  if (at_ > 0) return step == at_;
  if (overflow || HoldsWhenBad(results.step())) return overflow;
  const std::vector<float> losses = results.Output(0).ToFloats();
  return !std::all_of(losses.begin(), losses.end(), [](float loss) { return std::isfinite(loss); });
}

absl::StatusOr<StepCapsule> CapsuleWriter::Make(const StepResults& results, std::int64_t step,
                                                const std::vector<Tensor>& columns, CapsuleSource source) const {
  const CompiledStep& compiled = results.step();
  StepCapsule capsule;
  capsule.step = step;
  capsule.reason = ReasonOf(at_);
  capsule.program = compiled.compiled().program;
  if (absl::Status status = compiler::LinkGeneratedCode(capsule.program); !status.ok()) return status;
  capsule.traced = std::move(source.traced);
  capsule.options = std::move(source.options);
  capsule.origin = std::move(source.origin);
  for (const runtime::StateBinding& binding : capsule.program.state) {
    if (binding.role == Role::kDerived) continue;
    const auto entry = std::find_if(compiled.state().begin(), compiled.state().end(),
                                    [&](const Parameter& each) { return each.name() == binding.name; });
    if (entry == compiled.state().end()) {
      return absl::InternalError(absl::StrCat("the step has no state \"", binding.name, "\""));
    }
    const auto kept =
        std::find_if(before_.begin(), before_.end(), [&](const auto& each) { return each.first == binding.name; });
    absl::StatusOr<Tensor> value = kept != before_.end() ? absl::StatusOr<Tensor>(kept->second) : Copy(*entry->entry());
    if (!value.ok()) return value.status();
    capsule.state.emplace_back(binding.name, *std::move(value));
    if (!binding.written) continue;
    absl::StatusOr<std::string> checksum = StateChecksum(*entry->entry());
    if (!checksum.ok()) return checksum.status();
    capsule.after[binding.name] = *std::move(checksum);
  }
  for (std::size_t i = 0; i < capsule.program.inputs.size() && i < columns.size(); ++i) {
    capsule.batch.emplace_back(capsule.program.inputs[i].name, columns[i]);
  }
  for (std::size_t i = 0; i < capsule.program.outputs.size(); ++i) {
    capsule.record.emplace_back(capsule.program.outputs[i].name, results.Output(i));
  }
  return capsule;
}

void CapsuleWriter::Write(const StepResults& results, std::int64_t step, const std::vector<Tensor>& columns,
                          const std::function<absl::StatusOr<CapsuleSource>()>& source,
                          const std::function<void(const std::string&)>& say) {
  waits_ = false;
  const auto write = [&]() -> absl::Status {
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
  before_.clear();
}

}  // namespace mpc::internal
