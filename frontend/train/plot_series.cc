#include "frontend/train/plot_series.h"

#include <algorithm>
#include <cmath>

namespace mpc::internal {
namespace {

/// Differences of values up to here are finite.
constexpr double kLargest = 1e300;

/// Adds what `other` holds, whose steps come later.
void Merge(PlotSeries::Bin& bin, const PlotSeries::Bin& other) {
  bin.last_step = other.last_step;
  bin.not_finite += other.not_finite;
  if (other.count == 0) return;
  bin.low = bin.count > 0 ? std::min(bin.low, other.low) : other.low;
  bin.high = bin.count > 0 ? std::max(bin.high, other.high) : other.high;
  bin.count += other.count;
  const double share = static_cast<double>(other.count) / static_cast<double>(bin.count);
  bin.mean += (other.mean - bin.mean) * share;
}

}  // namespace

void PlotSeries::Add(std::int64_t step, double value) {
  Bin bin{.first_step = step, .last_step = step};
  if (std::abs(value) <= kLargest) {
    bin.count = 1;
    bin.mean = bin.low = bin.high = last_ = value;
  } else {
    bin.not_finite = 1;
  }
  if (!bins_.empty() && bins_.back().first_step / width_ == step / width_) {
    Merge(bins_.back(), bin);
    return;
  }
  bins_.push_back(bin);
  while (bins_.size() > kMostBins) HalveBins();
}

void PlotSeries::HalveBins() {
  width_ *= 2;
  std::vector<Bin> merged;
  for (const Bin& bin : bins_) {
    if (!merged.empty() && merged.back().first_step / width_ == bin.first_step / width_) {
      Merge(merged.back(), bin);
    } else {
      merged.push_back(bin);
    }
  }
  bins_ = std::move(merged);
}

std::int64_t PlotSeries::count() const {
  std::int64_t count = 0;
  for (const Bin& bin : bins_) count += bin.count;
  return count;
}

std::int64_t PlotSeries::not_finite() const {
  std::int64_t count = 0;
  for (const Bin& bin : bins_) count += bin.not_finite;
  return count;
}

}  // namespace mpc::internal
