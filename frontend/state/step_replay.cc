// Repeats the step of a capsule.
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "frontend/state/step_capsule.h"
#include "runtime/executable.h"

namespace mpc {
namespace {

/// How `found` differs from `kept`; empty where every bit is equal.
std::string Difference(const std::string& name, const Tensor& kept, const Tensor& found) {
  const absl::Span<const std::uint8_t> before = kept.bytes();
  const absl::Span<const std::uint8_t> now = found.bytes();
  const std::size_t size = ElementSize(kept.dtype());
  std::size_t different = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i * size < before.size(); ++i) {
    if (std::memcmp(before.data() + i * size, now.data() + i * size, size) == 0) continue;
    if (different++ == 0) first = i;
  }
  if (different == 0) return "";
  std::string text = absl::StrCat("output \"", name, "\": ", different, " of ", before.size() / size,
                                  " elements differ, the first is element ", first);
  if (IsFloating(kept.dtype())) {
    absl::StrAppend(&text, ", ", kept.ToFloats()[first], " in the capsule, ", found.ToFloats()[first], " here");
  }
  return text;
}

}  // namespace

absl::StatusOr<StepReplay> ReplayStep(const StepCapsule& capsule) {
  const absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(capsule.program.device);
  if (!device.ok()) return device.status();
  const absl::StatusOr<runtime::StateStore> state = MakeCapsuleState(capsule);
  if (!state.ok()) return state.status();
  const absl::StatusOr<std::unique_ptr<runtime::Executable>> step =
      (*device)->Load(std::make_shared<const runtime::Program>(capsule.program), *state);
  if (!step.ok()) return step.status();
  std::vector<absl::Span<const std::uint8_t>> inputs;
  for (const auto& [name, tensor] : capsule.batch) inputs.push_back(tensor.bytes());
  if (absl::Status status = (*step)->Run(inputs); !status.ok()) return status;
  if (absl::Status status = (*step)->Wait(); !status.ok()) return status;

  StepReplay replay;
  for (std::size_t i = 0; i < capsule.program.outputs.size(); ++i) {
    const auto& [name, kept] = capsule.record[i];
    const absl::Span<const std::uint8_t> bytes = (*step)->output(i);
    const Tensor found = Tensor::FromBytes(kept.spec(), bytes.data(), bytes.size());
    replay.record.emplace_back(name, found);
    if (std::string difference = Difference(name, kept, found); !difference.empty()) {
      replay.differences.push_back(std::move(difference));
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
