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
  const FlatUpdate* flat = nullptr;  ///< the flat update that they make up, or null
};

/// The attribute of collectives that a pass has put into one message: instructions of another number have another one.
inline constexpr const char* kBucket = "bucket";

/// Whether two instructions agree in kernel, attributes, types and used results. Of those that may share a message
/// (kernels/collective.h) the attributes alone must agree.
bool MayShareKernel(const Program& program, const Instruction& a, const Instruction& b);

/// Every instruction of a sequence of `program`, in order. Instructions that follow each other share a range where
/// three things hold. Their kernel may be grouped (`may_group` of its mnemonic: cpu::MayGroup, cuda::MayGroup).
/// MayShareKernel holds. None touches what another one writes. The instructions of a flat update are one range.
std::vector<InstructionRange> GroupInstructions(const Program& program, bool (*may_group)(std::string_view),
                                                std::size_t sequence = 0);

/// The instructions and specs that one kernel is made from, in the order of its operands.
struct GroupParts {
  std::vector<const Instruction*> instructions;  ///< the instructions whose operands the kernel is given
  std::vector<KernelSpec> specs;                 ///< one an instruction
};

/// Every instruction of `range` of a sequence. Or only the first, for all of them, where `range` is a flat update whose
/// tensors lie where it lays them out. Errors: those of MakeKernelSpec.
absl::StatusOr<GroupParts> PartsOf(const Program& program, const InstructionRange& range, const AddressOf& address,
                                   std::size_t sequence = 0);

/// Splits `copies` into ranges of copies that may run at once, in order. No copy touches what another one of its range
/// writes.
std::vector<InstructionRange> GroupCopies(const Program& program, const std::vector<ValueCopy>& copies);

}  // namespace mpc::runtime
