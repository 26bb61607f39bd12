#include "tools/mpc-bisect/step_results.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel.h"
#include "kernels/state_hash.h"

namespace mpc::tools {
namespace {

void SetThreads(const CapsuleFile& file) {
  int threads = file.threads;
  const auto made_with = file.capsule.origin.find("threads");
  if (threads == 0 && made_with != file.capsule.origin.end() && !absl::SimpleAtoi(made_with->second, &threads)) {
    threads = 0;
  }
  if (threads > 0) cpu::SetNumThreads(threads);
}

absl::StatusOr<StepReplay> Replay(const CapsuleFile& file, const ReplayObserver& observe) {
  SetThreads(file);
  absl::StatusOr<StepReplay> replay = ReplayStep(file.capsule, observe);
  if (replay.ok()) return replay;
  return absl::Status(replay.status().code(), absl::StrCat(file.path, ": ", replay.status().message()));
}

}  // namespace

absl::StatusOr<StepResults> ComputeResults(const CapsuleFile& file) {
  StepResults computed;
  const std::uint64_t key = HashKey("");
  absl::StatusOr<StepReplay> replay = Replay(file, [&](std::int64_t run, const runtime::ObservedResult& seen) {
    computed.results.push_back({{seen.sequence, seen.instruction, seen.result, run},
                                HashBytes(key, seen.bytes.data(), seen.bytes.size()),
                                computed.results.size()});
  });
  if (!replay.ok()) return replay.status();
  computed.replay = *std::move(replay);
  return computed;
}

absl::StatusOr<Tensor> ComputeResult(const CapsuleFile& file, std::size_t position) {
  std::optional<Tensor> value;
  std::size_t next = 0;
  const absl::StatusOr<StepReplay> replay = Replay(file, [&](std::int64_t run, const runtime::ObservedResult& seen) {
    if (next++ != position) return;
    const runtime::Value& result =
        ValueAt(ProgramOfRun(file.capsule, run), {seen.sequence, seen.instruction, seen.result});
    value = Tensor::FromBytes(result.spec, seen.bytes.data(), seen.bytes.size());
  });
  if (!replay.ok()) return replay.status();
  if (value.has_value()) return *std::move(value);
  return absl::InternalError(absl::StrCat(file.path, " has no result ", position, " but ", next));
}

bool IsOfAnyRanks(const StepCapsule& capsule, const StepResult& result) {
  const runtime::Program& program = ProgramOfRun(capsule, result.run);
  const Phase phase = InstructionAt(program, result).phase;
  const runtime::Value& value = ValueAt(program, result);
  const bool is_state = value.storage == runtime::Storage::kState;
  if (is_state && program.state[static_cast<std::size_t>(value.index)].role == Role::kAccumulator) return false;
  // What a process counts is whole numbers.
  if (phase == Phase::kForward || phase == Phase::kBackward) return is_state || IsFloating(value.spec.dtype);
  return is_state && result.run + 1 == capsule.runs;
}

std::string IdentityOf(const StepCapsule& capsule, const StepResult& result, bool with_sequence) {
  const runtime::Program& program = ProgramOfRun(capsule, result.run);
  const runtime::Instruction& instruction = InstructionAt(program, result);
  const std::string sequence = with_sequence ? program.sequences[result.sequence].name : "";
  return absl::StrCat(OperationOf(instruction), "|", instruction.scope, "|", std::string(PhaseName(instruction.phase)),
                      "|", sequence, "|", DescribeResult(program, result), "|", result.run);
}

}  // namespace mpc::tools
