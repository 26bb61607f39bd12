// A quantity over the steps of a run, in bounded memory. Not part of the public API.
#pragma once

#include <cstdint>
#include <vector>

namespace mpc::internal {

/// Values over steps, gathered in at most kMostBins bins of equally many steps. A bin holds one step at first. Where
/// the run outgrows the bins, neighbours are put together, so that each holds twice as many steps.
class PlotSeries {
 public:
  static constexpr std::size_t kMostBins = 400;

  struct Bin {
    std::int64_t first_step = 0, last_step = 0;
    std::int64_t count = 0;       ///< finite values
    std::int64_t not_finite = 0;  ///< values that are NaN or infinite, or beyond 1e300
    double mean = 0;              ///< mean of the finite values
    double low = 0, high = 0;     ///< limits of the finite values
  };

  /// `step` is not negative, and not before the one of the last call.
  void Add(std::int64_t step, double value);

  /// In the order of their steps; each holds a value.
  const std::vector<Bin>& bins() const { return bins_; }
  /// The last finite value; 0 before there is one.
  double last() const { return last_; }
  /// How many values are finite.
  std::int64_t count() const;
  std::int64_t not_finite() const;

 private:
  void HalveBins();

  std::vector<Bin> bins_;
  std::int64_t width_ = 1;  ///< steps of a bin
  double last_ = 0;
};

}  // namespace mpc::internal
