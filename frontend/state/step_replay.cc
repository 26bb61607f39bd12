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

absl::Status RunOnce(runtime::Executable& step, const StepCapsule& capsule, std::int64_t run,
                     const ReplayObserver& observe) {
  const std::vector<absl::Span<const std::uint8_t>> inputs = InputsOfRun(capsule, run);
  if (!observe) {
    const absl::Status status = step.Run(inputs);
    return status.ok() ? step.Wait() : status;
  }
  auto* const observable = dynamic_cast<runtime::ObservableStep*>(&step);
  if (observable != nullptr) {
    return observable->RunObserved(inputs, [&](const runtime::ObservedResult& seen) { observe(run, seen); });
  }
  return absl::UnimplementedError(absl::StrCat("device \"", step.program().device,
                                               "\" does not show the results of single operations; \"cpu\" and "
                                               "\"cuda\" do"));
}

/// Adds what the run that has ended gave to `replay`, which has the record of those before it.
void CompareOutputs(runtime::Executable& step, const StepCapsule& capsule, StepReplay& replay) {
  for (std::size_t i = 0; i < capsule.program.outputs.size(); ++i) {
    const auto& [name, kept] = capsule.record[replay.record.size()];
    const absl::Span<const std::uint8_t> bytes = step.output(i);
    replay.record.emplace_back(name, Tensor::FromBytes(kept.spec(), bytes.data(), bytes.size()));
    if (const auto difference = FindDifference(kept.spec(), kept.bytes(), bytes); difference.has_value()) {
      replay.differences.push_back(
          absl::StrCat("output \"", name, "\": ", difference->ToString("the capsule", "the replay")));
    }
  }
}

}  // namespace

bool IsFinite(const runtime::Program& program, const StepCapsule::NamedTensors& record) {
  for (std::size_t i = 0; i < record.size(); ++i) {
    const auto& [name, value] = record[i];
    const bool is_flag = absl::StartsWith(name, "finite");
    if (!is_flag && i % program.outputs.size() > 0) continue;
    for (const float element : value.ToFloats()) {
      if (is_flag ? element == 0 : !std::isfinite(element)) return false;
    }
  }
  return true;
}

std::vector<absl::Span<const std::uint8_t>> InputsOfRun(const StepCapsule& capsule, std::int64_t run) {
  const std::size_t count = capsule.program.inputs.size();
  std::vector<absl::Span<const std::uint8_t>> inputs;
  for (std::size_t i = 0; i < count; ++i) {
    inputs.push_back(capsule.batch[static_cast<std::size_t>(run) * count + i].second.bytes());
  }
  return inputs;
}

absl::StatusOr<StepReplay> ReplayStep(const StepCapsule& capsule, const ReplayObserver& observe) {
  const absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(capsule.program.device);
  if (!device.ok()) return device.status();
  const absl::StatusOr<runtime::StateStore> state = MakeCapsuleState(capsule);
  if (!state.ok()) return state.status();
  // Results are shown without a graph, which need not be recorded then.
  const absl::StatusOr<std::unique_ptr<runtime::Executable>> step =
      (*device)->Load(std::make_shared<const runtime::Program>(capsule.program), *state, {.graph = observe == nullptr});
  if (!step.ok()) return step.status();

  StepReplay replay;
  for (std::int64_t run = 0; run < capsule.runs; ++run) {
    if (absl::Status status = RunOnce(**step, capsule, run, observe); !status.ok()) return status;
    CompareOutputs(**step, capsule, replay);
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
