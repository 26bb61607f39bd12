#include <algorithm>
#include <vector>

#include "frontend/state/step_capsule.h"
#include "runtime/program_encoding.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/program_tables.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"

namespace mpc::fuzz {
namespace {

/// The Program of a file with the checksum that it should have. Where its tables are refused it stays as it is.
void MendProgram(Safetensors& content) {
  for (auto& [name, tensor] : content.tensors) {
    if (name != "program" || tensor.dtype() != DType::kU8) continue;
    const absl::StatusOr<runtime::Package> package = runtime::file::Decode(TablesOf(tensor.bytes()));
    if (!package.ok()) return;
    const absl::StatusOr<std::vector<std::uint8_t>> written = runtime::SerializePackage(*package);
    if (!written.ok()) return;
    tensor =
        Tensor::FromBytes({DType::kU8, {static_cast<std::int64_t>(written->size())}}, written->data(), written->size());
  }
}

bool SameTensors(const StepCapsule::NamedTensors& a, const StepCapsule::NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.first == other.first && one.second.spec() == other.second.spec() &&
           one.second.bytes() == other.second.bytes();
  });
}

bool SameOtherRanks(const StepCapsule& a, const StepCapsule& b) {
  return std::equal(a.other_ranks.begin(), a.other_ranks.end(), b.other_ranks.begin(), b.other_ranks.end(),
                    [](const StepCapsule::OtherRank& one, const StepCapsule::OtherRank& other) {
                      return SameTensors(one.state, other.state) && one.after == other.after;
                    });
}

}  // namespace

void ReadCapsule(absl::Span<const std::uint8_t> input) {
  static const auto* const file = new MemoryFile;
  file->Write(input);
  const absl::StatusOr<StepCapsule> whole = ReadStepCapsule(file->path());
  if (!whole.ok()) RequireRefusal(whole.status(), file->path());

  absl::StatusOr<Safetensors> content = ParseSafetensors(input, kOrigin);
  if (!content.ok()) return;
  MendProgram(*content);
  const absl::StatusOr<StepCapsule> capsule = ParseStepCapsule(*content, kOrigin);
  if (!capsule.ok()) return RequireRefusal(capsule.status());
  const absl::StatusOr<runtime::StateStore> state = MakeCapsuleState(*capsule, capsule->ranks - 1);
  Require(state.ok(), "what was accepted has no state: " + state.status().ToString());
  file->Write({});
  const absl::Status written = WriteStepCapsule(file->path(), *capsule);
  Require(written.ok(), "what was accepted cannot be written: " + written.ToString());
  const absl::StatusOr<StepCapsule> again = ReadStepCapsule(file->path());
  Require(again.ok(), "what was written cannot be read: " + again.status().ToString());
  Require(again->step == capsule->step && again->runs == capsule->runs && again->ranks == capsule->ranks &&
              again->accumulating.has_value() == capsule->accumulating.has_value() &&
              SameOtherRanks(*again, *capsule) && again->after == capsule->after &&
              again->options == capsule->options && SameTensors(again->state, capsule->state) &&
              SameTensors(again->batch, capsule->batch) && SameTensors(again->record, capsule->record),
          "a capsule changes when it is written and read");
}

}  // namespace mpc::fuzz
