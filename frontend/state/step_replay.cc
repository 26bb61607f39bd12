// Repeats the step of a capsule.
#include <cmath>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/state/step_capsule.h"
#include "frontend/state/tensor_difference.h"
#include "runtime/executable.h"

namespace mpc {
namespace {

absl::Status RunOneStep(runtime::Executable& step, runtime::StepInputs inputs, const runtime::ResultObserver& observe) {
  if (!observe) return step.Run(inputs);
  auto* const observable = dynamic_cast<runtime::ObservableStep*>(&step);
  if (observable != nullptr) return observable->RunObserved(inputs, observe);
  return absl::UnimplementedError(absl::StrCat("device \"", step.program().device,
                                               "\" does not show the results of single operations; \"cpu\" does"));
}

}  // namespace

bool IsFinite(const StepCapsule::NamedTensors& record) {
  for (std::size_t i = 0; i < record.size(); ++i) {
    const auto& [name, value] = record[i];
    const bool is_flag = absl::StartsWith(name, "finite");
    if (!is_flag && i > 0) continue;
    for (const float element : value.ToFloats()) {
      if (is_flag ? element == 0 : !std::isfinite(element)) return false;
    }
  }
  return true;
}

absl::StatusOr<StepReplay> ReplayStep(const StepCapsule& capsule, const runtime::ResultObserver& observe) {
  const absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(capsule.program.device);
  if (!device.ok()) return device.status();
  const absl::StatusOr<runtime::StateStore> state = MakeCapsuleState(capsule);
  if (!state.ok()) return state.status();
  const absl::StatusOr<std::unique_ptr<runtime::Executable>> step =
      (*device)->Load(std::make_shared<const runtime::Program>(capsule.program), *state);
  if (!step.ok()) return step.status();
  std::vector<absl::Span<const std::uint8_t>> inputs;
  for (const auto& [name, tensor] : capsule.batch) inputs.push_back(tensor.bytes());
  if (absl::Status status = RunOneStep(**step, inputs, observe); !status.ok()) return status;
  if (absl::Status status = (*step)->Wait(); !status.ok()) return status;

  StepReplay replay;
  for (std::size_t i = 0; i < capsule.program.outputs.size(); ++i) {
    const auto& [name, kept] = capsule.record[i];
    const absl::Span<const std::uint8_t> bytes = (*step)->output(i);
    const Tensor found = Tensor::FromBytes(kept.spec(), bytes.data(), bytes.size());
    replay.record.emplace_back(name, found);
    if (const auto difference = FindDifference(kept.spec(), kept.bytes(), bytes); difference.has_value()) {
      replay.differences.push_back(
          absl::StrCat("output \"", name, "\": ", difference->ToString("the capsule", "the replay")));
    }
  }
  for (const runtime::StateBinding& binding : capsule.program.state) {
    if (binding.role == Role::kDerived || !binding.written) continue;
    const absl::StatusOr<std::string> checksum = StateChecksum(*state->Find(binding.name));
    if (!checksum.ok()) return checksum.status();
    replay.after[binding.name] = *checksum;
    if (const std::string& kept = capsule.after.at(binding.name); kept != *checksum) {
      replay.differences.push_back(absl::StrCat("state \"", binding.name, "\" after the step: checksum ", kept,
                                                " in the capsule, ", *checksum, " here"));
    }
  }
  return replay;
}

}  // namespace mpc
