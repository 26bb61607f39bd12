#include "tools/support/program_results.h"

#include "absl/strings/str_cat.h"
#include "runtime/generated_call.h"
#include "runtime/program_binding.h"

namespace mpc::tools {

const runtime::Instruction& InstructionAt(const runtime::Program& program, const ResultPlace& place) {
  return program.sequences[place.sequence].instructions[place.instruction];
}

const runtime::Value& ValueAt(const runtime::Program& program, const ResultPlace& place) {
  return program.values[InstructionAt(program, place).outputs[place.result]];
}

std::string DeviceOf(const runtime::Program& program) {
  return program.arch.empty() ? program.device : absl::StrCat(program.device, " ", program.arch);
}

std::string OperationOf(const runtime::Instruction& instruction) {
  if (!runtime::IsGenerated(instruction.kernel)) return instruction.kernel;
  return instruction.attributes.GetString(runtime::kOperationsAttribute, instruction.kernel);
}

std::string DescribeOperation(const runtime::Program& program, const ResultPlace& place) {
  const runtime::Instruction& instruction = InstructionAt(program, place);
  std::string text = runtime::DescribeInstruction(program, place.instruction, place.sequence);
  if (runtime::IsGenerated(instruction.kernel)) absl::StrAppend(&text, " of ", OperationOf(instruction));
  return absl::StrCat(text, ", phase ", std::string(PhaseName(instruction.phase)));
}

std::string DescribeResult(const runtime::Program& program, const ResultPlace& place) {
  const runtime::Value& value = ValueAt(program, place);
  std::string text = absl::StrCat("result ", place.result, ", ", value.spec.ToString());
  if (value.storage != runtime::Storage::kState) return text;
  return absl::StrCat(text, " in state \"", program.state[static_cast<std::size_t>(value.index)].name, "\"");
}

}  // namespace mpc::tools
