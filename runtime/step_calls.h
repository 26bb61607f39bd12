// A Program's instructions as kernels with every address resolved. Each device makes these calls before it runs any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/copy_range.h"
#include "kernels/kernel_spec.h"
#include "runtime/program.h"
#include "runtime/program_binding.h"
#include "runtime/step_groups.h"

namespace mpc::runtime {

/// Groups of copies. The groups run one after another; the copies of a group may run at once.
using CopyGroups = std::vector<std::vector<CopyRange>>;

/// A call runs one kernel: that of an instruction, or of several that share a launch or a parallel region. Or it is an
/// instruction that runs a sequence.
template <typename KernelPointer>
struct StepCall {
  KernelPointer kernel;  ///< null where it runs a sequence
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  void* workspace = nullptr;     ///< null where the kernel wants more than the Program plans
  std::size_t sequence = 0;      ///< the sequence that the instructions belong to
  std::size_t instruction = 0;   ///< the first instruction
  std::size_t instructions = 1;  ///< number of instructions that the kernel computes
  std::size_t called = 0;        ///< the sequence that it runs; 0: none
  std::int64_t runs = 1;         ///< how often it runs that sequence
  CopyGroups begin;              ///< done before the first run
  std::string name;              ///< name in profiles: the Cell path and the mnemonic
};

/// The calls of a sequence, and the copies behind them.
template <typename KernelPointer>
struct CallSequence {
  std::vector<StepCall<KernelPointer>> calls;
  CopyGroups copies;
};

template <typename KernelPointer>
struct StepCalls {
  std::vector<CallSequence<KernelPointer>> sequences;  ///< one for each of Program::sequences
  std::vector<StepCall<KernelPointer>> refreshes;      ///< one for each of Program::refreshes
};

/// The parts that a device adds: where values lie, and its kernels.
template <typename KernelPointer>
struct StepBinding {
  std::function<void*(const Value&)> address;
  std::byte* arena = nullptr;
  bool (*may_group)(std::string_view kernel) = nullptr;
  MayAliasFunction may_alias;
  std::function<absl::StatusOr<KernelPointer>(const Instruction&, const KernelSpec&)> make_kernel;
  /// Returns UNIMPLEMENTED where each instruction is to have a kernel of its own.
  std::function<absl::StatusOr<KernelPointer>(const std::vector<KernelSpec>&)> make_group_kernel;
};

/// Makes the calls of `program`, which has passed CheckProgram. Errors: an output that overlaps what its kernel still
/// reads, and those of making kernels, each with the instruction and its Cell.
template <typename KernelPointer>
class StepBinder {
 public:
  using Call = StepCall<KernelPointer>;

  StepBinder(const Program& program, const StepBinding<KernelPointer>& binding)
      : program_(program), binding_(binding) {}

  absl::StatusOr<StepCalls<KernelPointer>> Bind() {
    StepCalls<KernelPointer> bound;
    for (std::size_t i = 0; i < program_.sequences.size(); ++i) {
      CallSequence<KernelPointer>& sequence = bound.sequences.emplace_back();
      if (absl::Status status = BindInstructions(i, sequence.calls); !status.ok()) return status;
      sequence.copies = Bind(program_.sequences[i].copies);
    }
    for (const StateRefresh& refresh : program_.refreshes) {
      absl::StatusOr<Call> call = MakeCall(refresh.instruction);
      if (!call.ok()) return WithPlace(DescribeRefresh(program_, refresh), call.status());
      bound.refreshes.push_back(*std::move(call));
    }
    return bound;
  }

 private:
  absl::Status BindInstructions(std::size_t sequence, std::vector<Call>& calls) {
    const std::vector<Instruction>& instructions = program_.sequences[sequence].instructions;
    const auto add = [&](std::size_t first, std::size_t count, absl::StatusOr<Call> call) {
      if (!call.ok()) return WithPlace(DescribeInstruction(program_, first, sequence), call.status());
      call->sequence = sequence;
      call->instruction = first;
      call->instructions = count;
      calls.push_back(*std::move(call));
      return absl::OkStatus();
    };
    for (const InstructionRange& range : GroupInstructions(program_, binding_.may_group, sequence)) {
      const std::size_t end = range.first + range.count;
      for (std::size_t i = range.first; i < end; ++i) {
        const absl::Status status = CheckOverlaps(program_, instructions[i], binding_.may_alias);
        if (!status.ok()) return WithPlace(DescribeInstruction(program_, i, sequence), status);
      }
      if (range.count > 1) {
        absl::StatusOr<Call> group = MakeGroup(range, sequence);
        if (!absl::IsUnimplemented(group.status())) {
          if (absl::Status status = add(range.first, range.count, std::move(group)); !status.ok()) return status;
          continue;
        }
      }
      for (std::size_t i = range.first; i < end; ++i) {
        if (absl::Status status = add(i, 1, MakeCall(instructions[i])); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Call> MakeCall(const Instruction& instruction) const {
    Call call;
    call.name =
        instruction.scope.empty() ? instruction.kernel : absl::StrCat(instruction.scope, " ", instruction.kernel);
    AddOperands(instruction, call);
    if (instruction.sequence != 0) {
      call.called = static_cast<std::size_t>(instruction.sequence);
      call.runs = instruction.attributes.GetInt(kRepeatCount);
      std::vector<ValueCopy> begin;
      for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
        begin.push_back({instruction.inputs[i], instruction.outputs[i], ""});
      }
      call.begin = Bind(begin);
      return call;
    }
    absl::StatusOr<KernelSpec> spec = MakeKernelSpec(program_, instruction);
    if (!spec.ok()) return spec.status();
    absl::StatusOr<KernelPointer> kernel = binding_.make_kernel(instruction, *spec);
    if (!kernel.ok()) return kernel.status();
    call.kernel = *std::move(kernel);
    if (call.kernel->workspace_bytes() <= instruction.workspace_bytes) {
      call.workspace = binding_.arena + instruction.workspace_offset;
    }
    return call;
  }

  absl::StatusOr<Call> MakeGroup(const InstructionRange& range, std::size_t sequence) const {
    const absl::StatusOr<GroupParts> parts = PartsOf(program_, range, binding_.address, sequence);
    if (!parts.ok()) return parts.status();
    absl::StatusOr<KernelPointer> kernel = binding_.make_group_kernel(parts->specs);
    if (!kernel.ok()) return kernel.status();
    Call call;
    call.kernel = *std::move(kernel);
    call.name = absl::StrCat(parts->instructions.front()->kernel, " of ", range.count, " operands");
    for (const Instruction* instruction : parts->instructions) AddOperands(*instruction, call);
    return call;
  }

  void AddOperands(const Instruction& instruction, Call& call) const {
    for (ValueId id : instruction.inputs) call.inputs.push_back(AddressOfValue(id));
    for (ValueId id : instruction.outputs) call.outputs.push_back(id == kNoValue ? nullptr : AddressOfValue(id));
  }

  CopyGroups Bind(const std::vector<ValueCopy>& copies) const {
    CopyGroups bound;
    for (const InstructionRange& range : GroupCopies(program_, copies)) {
      std::vector<CopyRange> group;
      for (std::size_t i = range.first; i < range.first + range.count; ++i) {
        const CopyRange copy{AddressOfValue(copies[i].to), AddressOfValue(copies[i].from),
                             program_.values[copies[i].to].spec.bytes()};
        if (copy.from != copy.to) group.push_back(copy);
      }
      if (!group.empty()) bound.push_back(std::move(group));
    }
    return bound;
  }

  void* AddressOfValue(ValueId id) const { return binding_.address(program_.values[id]); }

  const Program& program_;
  const StepBinding<KernelPointer>& binding_;
};

/// Runs `call`: run(kernel_call) for each kernel, copy(group) for each group of copies. Both return an absl::Status.
/// The first error ends the call.
template <typename KernelPointer, typename RunFunction, typename CopyFunction>
absl::Status RunCall(const StepCalls<KernelPointer>& calls, const StepCall<KernelPointer>& call, const RunFunction& run,
                     const CopyFunction& copy) {
  if (call.called == 0) return run(call);
  const CallSequence<KernelPointer>& sequence = calls.sequences[call.called];
  for (const std::vector<CopyRange>& group : call.begin) {
    if (absl::Status status = copy(group); !status.ok()) return status;
  }
  for (std::int64_t i = 0; i < call.runs; ++i) {
    for (const StepCall<KernelPointer>& each : sequence.calls) {
      if (absl::Status status = RunCall(calls, each, run, copy); !status.ok()) return status;
    }
    for (const std::vector<CopyRange>& group : sequence.copies) {
      if (absl::Status status = copy(group); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace mpc::runtime
