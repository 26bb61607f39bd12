// How many levels the sum of a step's micro-steps has.
#pragma once

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>

namespace mpc {

/// The levels of mpc.accumulate_gradient for \p count micro-steps, at least one: that many accumulators hold the sums
/// of 1, 2, 4, ... of them.
inline int64_t accumulationLevels(int64_t count) {
  return std::max<int64_t>(count > 1 ? llvm::Log2_64_Ceil(uint64_t(count)) : 1, 1);
}

} // namespace mpc
