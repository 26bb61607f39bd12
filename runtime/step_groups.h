// Which instructions of a Program become one kernel: one launch on a GPU, one parallel region on the CPU.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_spec.h"
#include "runtime/flat_updates.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// Instructions [first, first + count).
struct InstructionRange {
  std::size_t first = 0;
  std::size_t count = 1;
  const FlatUpdate* flat = nullptr;  ///< the update of flat buffers that they are, where they are one
};

/// Whether two instructions agree in kernel, attributes, types and used results.
bool MayShareKernel(const Program& program, const Instruction& a, const Instruction& b);

/// Every instruction of a sequence of `program`, in order. Instructions that follow each other share a range where
/// their kernel may be grouped (`may_group` of its mnemonic: cpu::MayGroup, cuda::MayGroup), attributes, types and used
/// results agree, and none touches what another one writes. Those of a flat update are one range.
std::vector<InstructionRange> GroupInstructions(const Program& program, bool (*may_group)(std::string_view),
                                                std::size_t sequence = 0);

/// What the one kernel of several instructions is made from, in the order of its operands.
struct GroupParts {
  std::vector<const Instruction*> instructions;  ///< whose operands the kernel is given
  std::vector<KernelSpec> specs;                 ///< one an instruction
};

/// Every instruction of `range` of a sequence, or one for all: the first of a flat update whose tensors lie where it
/// lays them out. Errors: those of MakeKernelSpec.
absl::StatusOr<GroupParts> PartsOf(const Program& program, const InstructionRange& range, const AddressOf& address,
                                   std::size_t sequence = 0);

/// Copies that may run at once: ranges of `copies`, in order, such that no copy touches what another one of its range
/// writes.
std::vector<InstructionRange> GroupCopies(const Program& program, const std::vector<ValueCopy>& copies);

}  // namespace mpc::runtime
