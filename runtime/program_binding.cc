#include "runtime/program_binding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/collective.h"
#include "kernels/known_attributes.h"
#include "kernels/weight_packing.h"
#include "runtime/generated_call.h"
#include "runtime/program_check.h"

namespace mpc::runtime {
namespace {

bool TouchesWorkspace(const Value& value, const Instruction& instruction) {
  if (value.storage != Storage::kTemporary && value.storage != Storage::kInput) return false;
  return value.offset < instruction.workspace_offset + instruction.workspace_bytes &&
         instruction.workspace_offset < value.offset + value.spec.bytes();
}

}  // namespace

bool ShareStorage(const Value& a, const Value& b) {
  if (a.storage == Storage::kConstant || b.storage == Storage::kConstant) return false;
  if (a.storage == Storage::kState || b.storage == Storage::kState) {
    return a.storage == b.storage && a.index == b.index;
  }
  return a.offset < b.offset + b.spec.bytes() && b.offset < a.offset + a.spec.bytes();
}

bool SamePlace(const Value& a, const Value& b) {
  const bool begins_there = a.storage == Storage::kState || a.offset == b.offset;
  return begins_there && a.spec.dtype == b.spec.dtype && a.spec.bytes() == b.spec.bytes();
}

std::string ChoiceFor(const Program& program, const std::string& key) {
  const auto found = std::find_if(program.choices.begin(), program.choices.end(),
                                  [&key](const auto& choice) { return choice.first == key; });
  return found == program.choices.end() ? "" : found->second;
}

absl::Status WithPlace(const std::string& place, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(place, ": ", status.message()));
}

absl::StatusOr<KernelSpec> MakeKernelSpec(const Program& program, const Instruction& instruction) {
  KernelSpec spec;
  spec.name = instruction.kernel;
  spec.attributes = instruction.attributes;
  const auto in_range = [&](ValueId id) { return id >= 0 && static_cast<std::size_t>(id) < program.values.size(); };
  for (ValueId id : instruction.inputs) {
    if (!in_range(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat(instruction.kernel, " reads value ", id, " of ", program.values.size()));
    }
    spec.inputs.push_back(program.values[id].spec);
  }
  for (ValueId id : instruction.outputs) {
    if (id != kNoValue && !in_range(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat(instruction.kernel, " writes value ", id, " of ", program.values.size()));
    }
    spec.output_used.push_back(id != kNoValue);
    spec.outputs.push_back(id == kNoValue ? TensorSpec{} : program.values[id].spec);
  }
  if (absl::Status status = ReadPacked(spec); !status.ok()) return status;
  return spec;
}

std::string DescribeInstruction(const Program& program, std::size_t position, std::size_t sequence) {
  const Instruction& instruction = program.sequences[sequence].instructions[position];
  const std::string called =
      sequence == 0 ? "" : absl::StrCat(", sequence ", sequence, " (@", program.sequences[sequence].name, ")");
  return absl::StrCat(program.name, called, ", instruction ", position, " (", instruction.kernel,
                      instruction.scope.empty() ? "" : " in ", instruction.scope, ")");
}

std::string DescribeRefresh(const Program& program, const StateRefresh& refresh) {
  return absl::StrCat(program.name, ", refresh of ", program.state[refresh.derived].name);
}

absl::StatusOr<StateEntries> BindState(const Program& program, const StateStore& store) {
  const std::vector<StateUse> uses = FindStateUses(program);
  std::vector<std::shared_ptr<StateEntry>> entries;
  std::vector<std::string> problems;
  bool missing = false;
  for (std::size_t i = 0; i < program.state.size(); ++i) {
    const StateBinding& binding = program.state[i];
    std::shared_ptr<StateEntry> entry = store.Find(binding.name);
    if (entry == nullptr) {
      missing = true;
      problems.push_back(absl::StrCat("\"", binding.name, "\" (", std::string(RoleName(binding.role)), ", ",
                                      binding.spec.ToString(), ") is missing"));
    } else if (entry->spec() != binding.spec) {
      problems.push_back(
          absl::StrCat("\"", binding.name, "\" is ", entry->spec().ToString(), ", expected ", binding.spec.ToString()));
    } else if (uses[i].read_before_written && !entry->initialised()) {
      problems.push_back(absl::StrCat("\"", binding.name, "\" is read but was never initialised"));
    }
    entries.push_back(std::move(entry));
  }
  if (problems.empty()) return entries;
  const std::string message = absl::StrCat("program \"", program.name, "\" cannot be bound to this state:\n  ",
                                           absl::StrJoin(problems, "\n  "));
  return missing ? absl::NotFoundError(message) : absl::InvalidArgumentError(message);
}

absl::Status CheckOverlaps(const Program& program, const Instruction& instruction, const MayAliasFunction& may_alias) {
  const auto allowed = [&](std::size_t output, std::size_t input) {
    if (instruction.sequence != 0) return output == input;
    return IsGenerated(instruction.kernel) ? GeneratedMayAlias(instruction, output, input)
                                           : may_alias(instruction.kernel, output, input);
  };
  for (std::size_t input = 0; input < instruction.inputs.size(); ++input) {
    if (TouchesWorkspace(program.values[instruction.inputs[input]], instruction)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", input, " overlaps the workspace"));
    }
  }
  for (std::size_t output = 0; output < instruction.outputs.size(); ++output) {
    if (instruction.outputs[output] == kNoValue) continue;
    const Value& target = program.values[instruction.outputs[output]];
    if (TouchesWorkspace(target, instruction)) {
      return absl::InvalidArgumentError(absl::StrCat("output ", output, " overlaps the workspace"));
    }
    for (std::size_t input = 0; input < instruction.inputs.size(); ++input) {
      const Value& source = program.values[instruction.inputs[input]];
      if (!ShareStorage(target, source)) continue;
      if (SamePlace(target, source) && allowed(output, input)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("output ", output, " overwrites input ", input, ", which the kernel still reads"));
    }
    for (std::size_t other = 0; other < output; ++other) {
      if (instruction.outputs[other] == kNoValue) continue;
      if (ShareStorage(target, program.values[instruction.outputs[other]])) {
        return absl::InvalidArgumentError(absl::StrCat("outputs ", other, " and ", output, " overlap"));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> ProcessesOf(const Program& program) {
  std::int64_t processes = 1;
  for (std::size_t i = 0; i < program.sequences.size(); ++i) {
    const std::vector<Instruction>& instructions = program.sequences[i].instructions;
    for (std::size_t j = 0; j < instructions.size(); ++j) {
      if (!IsCollective(instructions[j].kernel)) continue;
      const std::int64_t given = instructions[j].attributes.Get(attribute::kProcesses);
      if (given == 1 || given == processes) continue;
      if (processes != 1 || given < 1) {
        return absl::InvalidArgumentError(absl::StrCat(DescribeInstruction(program, j, i), " is for ", given,
                                                       " processes, an earlier one is for ", processes));
      }
      processes = given;
    }
  }
  return processes;
}

absl::Status CheckProcesses(const Program& program, const Communicator* communicator) {
  const absl::StatusOr<std::int64_t> processes = ProcessesOf(program);
  if (!processes.ok()) return processes.status();
  if (*processes == 1 || (communicator != nullptr && communicator->size() == *processes)) return absl::OkStatus();
  const std::string given = communicator == nullptr ? "this process trains alone: distributed::Init has not been called"
                                                    : absl::StrCat("this process is one of ", communicator->size());
  return absl::FailedPreconditionError(
      absl::StrCat("program \"", program.name, "\" was compiled for ", *processes, " processes; ", given));
}

absl::Status CheckInputs(const Program& program, StepInputs inputs) {
  bool matches = inputs.size() == program.inputs.size();
  for (std::size_t i = 0; matches && i < inputs.size(); ++i) {
    matches = inputs[i].size() == program.values[program.inputs[i].value].spec.bytes();
  }
  if (matches) return absl::OkStatus();
  std::vector<std::string> expected;
  for (const NamedValue& input : program.inputs) {
    const TensorSpec& spec = program.values[input.value].spec;
    expected.push_back(absl::StrCat("\"", input.name, "\" ", spec.ToString(), " (", spec.bytes(), " bytes)"));
  }
  std::vector<std::string> given;
  for (absl::Span<const std::uint8_t> input : inputs) given.push_back(absl::StrCat(input.size(), " bytes"));
  return absl::InvalidArgumentError(absl::StrCat("program \"", program.name, "\" takes ", expected.size(), " inputs [",
                                                 absl::StrJoin(expected, ", "), "], got ", given.size(), " [",
                                                 absl::StrJoin(given, ", "), "]"));
}

}  // namespace mpc::runtime
