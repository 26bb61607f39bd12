#include "tools/mpc-bisect/step_results.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/kernel.h"
#include "kernels/state_hash.h"
#include "runtime/generated_call.h"
#include "runtime/program_binding.h"

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

absl::StatusOr<StepReplay> Replay(const CapsuleFile& file, const runtime::ResultObserver& observe) {
  SetThreads(file);
  absl::StatusOr<StepReplay> replay = ReplayStep(file.capsule, observe);
  if (replay.ok()) return replay;
  return absl::Status(replay.status().code(), absl::StrCat(file.path, ": ", replay.status().message()));
}

const runtime::Instruction& InstructionOf(const runtime::Program& program, const StepResult& result) {
  return program.sequences[result.sequence].instructions[result.instruction];
}

}  // namespace

absl::StatusOr<StepResults> ComputeResults(const CapsuleFile& file) {
  StepResults computed;
  const std::uint64_t key = HashKey("");
  absl::StatusOr<StepReplay> replay = Replay(file, [&](const runtime::ObservedResult& seen) {
    computed.results.push_back(
        {seen.sequence, seen.instruction, seen.result, HashBytes(key, seen.bytes.data(), seen.bytes.size())});
  });
  if (!replay.ok()) return replay.status();
  computed.replay = *std::move(replay);
  return computed;
}

absl::StatusOr<Tensor> ComputeResult(const CapsuleFile& file, std::size_t position) {
  std::optional<Tensor> value;
  std::size_t next = 0;
  const absl::StatusOr<StepReplay> replay = Replay(file, [&](const runtime::ObservedResult& seen) {
    if (next++ != position) return;
    const runtime::Program& program = file.capsule.program;
    const runtime::ValueId id = program.sequences[seen.sequence].instructions[seen.instruction].outputs[seen.result];
    value = Tensor::FromBytes(program.values[id].spec, seen.bytes.data(), seen.bytes.size());
  });
  if (!replay.ok()) return replay.status();
  if (value.has_value()) return *std::move(value);
  return absl::InternalError(absl::StrCat(file.path, " has no result ", position, " but ", next));
}

std::string OperationOf(const runtime::Instruction& instruction) {
  if (!runtime::IsGenerated(instruction.kernel)) return instruction.kernel;
  return instruction.attributes.GetString(runtime::kOperationsAttribute, instruction.kernel);
}

std::string IdentityOf(const runtime::Program& program, const StepResult& result) {
  const runtime::Instruction& instruction = InstructionOf(program, result);
  return absl::StrCat(OperationOf(instruction), "|", instruction.scope, "|", std::string(PhaseName(instruction.phase)),
                      "|", program.sequences[result.sequence].name, "|", DescribeResult(program, result));
}

std::string DescribeOperation(const runtime::Program& program, const StepResult& result) {
  const runtime::Instruction& instruction = InstructionOf(program, result);
  std::string text = runtime::DescribeInstruction(program, result.instruction, result.sequence);
  if (runtime::IsGenerated(instruction.kernel)) absl::StrAppend(&text, " of ", OperationOf(instruction));
  return absl::StrCat(text, ", phase ", std::string(PhaseName(instruction.phase)));
}

std::string DescribeResult(const runtime::Program& program, const StepResult& result) {
  const runtime::Value& value = program.values[InstructionOf(program, result).outputs[result.result]];
  std::string text = absl::StrCat("result ", result.result, ", ", value.spec.ToString());
  if (value.storage != runtime::Storage::kState) return text;
  return absl::StrCat(text, " in state \"", program.state[static_cast<std::size_t>(value.index)].name, "\"");
}

}  // namespace mpc::tools
