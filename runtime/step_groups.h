// Which instructions of a Program become one kernel: one launch on a GPU, one parallel region on the CPU.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/program.h"

namespace mpc::runtime {

/// Instructions [first, first + count).
struct InstructionRange {
  std::size_t first = 0;
  std::size_t count = 1;
};

/// Every instruction of `program`, in order. Instructions that follow each other share a range where their kernel may
/// be grouped (`may_group` of its mnemonic: cpu::MayGroup, cuda::MayGroup), attributes, types and used results agree,
/// and none touches what another one writes.
std::vector<InstructionRange> GroupInstructions(const Program& program, bool (*may_group)(std::string_view));

/// Copies that may run at once: ranges of Program::state_copies, in order, such that no copy touches what another one
/// of its range writes.
std::vector<InstructionRange> GroupStateCopies(const Program& program);

}  // namespace mpc::runtime
