#include "passes/precision/precision_hull.h"

#include <cassert>

namespace mpc {

namespace {

HullPoint solveAt(PrecisionCut &cut, PrecisionCut::Factors factors) {
  [[maybe_unused]] const bool solved = cut.solve(factors);
  assert(solved && "sums below the limit of a hull fit at every factor");
  HullPoint point{cut.getTime(), cut.getError(), {}};
  for (unsigned node = 0; node < cut.numNodes(); ++node)
    point.low.push_back(cut.isLow(node));
  return point;
}

// Appends the corners between `fast` and `exact`, without these.
void addCornersBetween(PrecisionCut &cut, const HullPoint &fast, const HullPoint &exact,
                       std::vector<HullPoint> &corners) {
  if (fast.error == exact.error || fast.time == exact.time)
    return;
  const PrecisionCut::Factors factors{fast.error - exact.error, exact.time - fast.time};
  const HullPoint between = solveAt(cut, factors);
  if (between.time * factors.time + between.error * factors.error ==
      fast.time * factors.time + fast.error * factors.error)
    return;
  addCornersBetween(cut, fast, between, corners);
  corners.push_back(between);
  addCornersBetween(cut, between, exact, corners);
}

} // namespace

std::vector<HullPoint> findLowerHull(PrecisionCut &cut) {
  assert(cut.getTotalTime() < hullLimit && cut.getTotalError() < hullLimit && "products of sums fit 64 bits");
  // No difference of the other sum outweighs one unit.
  const HullPoint fast = solveAt(cut, {cut.getTotalError() + 1, 1});
  const HullPoint exact = solveAt(cut, {1, cut.getTotalTime() + 1});
  std::vector<HullPoint> corners{fast};
  addCornersBetween(cut, fast, exact, corners);
  if (exact.error != fast.error)
    corners.push_back(exact);
  return corners;
}

} // namespace mpc
