#include "tools/support/percentiles.h"

#include <algorithm>
#include <cstddef>

namespace mpc::tools {
namespace {

double Interpolate(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Percentiles PercentilesOf(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {.p5 = Interpolate(samples, 0.05), .median = Interpolate(samples, 0.5), .p95 = Interpolate(samples, 0.95)};
}

}  // namespace mpc::tools
