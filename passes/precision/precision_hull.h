// The assignments between the fastest and the most exact one that are best at some price of error.
#pragma once

#include "passes/precision/precision_cut.h"

#include <cstdint>
#include <vector>

namespace mpc {

/// An assignment of a cut's nodes, with what it costs.
struct HullPoint {
  std::int64_t time = 0;
  std::int64_t error = 0;
  std::vector<bool> low; ///< by node
};

/// What a cut's times, and its errors, may add up to for findLowerHull().
constexpr std::int64_t hullLimit = std::int64_t(1) << 29;

/// The corners of the lower hull of all assignments' (time, error), the fastest first. Of the fastest assignments the
/// first corner is the most exact, and of the most exact ones the last corner is the fastest. The low nodes of each
/// corner are among those of the corner before it.
///
/// Between two corners the cut is solved at the factors at which both cost the same. A cheaper solution is another
/// corner (Eisner and Severance 1976, "Mathematical techniques for efficient record segmentation in large shared
/// databases"). Everything is exact in integers. k corners take at most 2k + 1 cuts. Both sums of \p cut are below
/// hullLimit.
std::vector<HullPoint> findLowerHull(PrecisionCut &cut);

} // namespace mpc
