// State that a step leaves alone where the predicate of an optimizer's update is false. It is so in all batches of an
// accumulated step but the last, and where an overflow skips the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/program.h"

namespace mpc::runtime {

/// Whether kernel `name` is an optimizer's update of a parameter: the element-wise ones and lamb. Their last operand
/// may be a predicate.
bool IsOptimizer(std::string_view name);

/// An update of a state entry by an instruction of the step.
struct PredicatedUpdate {
  std::size_t instruction = 0;
  ValueId predicate = kNoValue;  ///< a bool: where it is 0 when the instruction runs, the entry keeps its content
  std::int32_t state = -1;       ///< index into Program::state
};

/// The updates of entries that nothing else in `program` writes, in the order of their instructions. The entries are
/// parameters, slots and low copies that optimizers update in place. `program` has passed CheckProgram.
std::vector<PredicatedUpdate> FindPredicatedUpdates(const Program& program);

}  // namespace mpc::runtime
