// The loss scale that the gradients of a step are expected to leave room for.
#pragma once

#include "compiler/ranges/range_analysis.h"

namespace mpc::ranges {

/// A scale with what it follows from.
struct DerivedScale {
  double scale = 0;    ///< a power of two in [1, 2^24]; 0: none follows
  mlir::Value largest; ///< the low tensor that is expected to reach furthest
  double peak = 0;     ///< the largest size that is expected of it at scale 1
  int64_t unknown = 0; ///< low tensors that grow with the scale, of which nothing is expected
};

/// The largest power of two that leaves every low tensor that grows with it a margin. Each is expected to be 4 times
/// smaller than its type allows. \p analysis was made at scale 1. It has no scale
/// where no f16 tensor grows with one, or nothing is expected of any.
DerivedScale deriveLossScale(const RangeAnalysis &analysis);

} // namespace mpc::ranges
