// How samples are spread.
#pragma once

#include <vector>

namespace mpc::tools {

struct Percentiles {
  double p5 = 0;
  double median = 0;
  double p95 = 0;
};

/// By linear interpolation between the two nearest of `samples`, of which there is at least one.
Percentiles PercentilesOf(std::vector<double> samples);

}  // namespace mpc::tools
