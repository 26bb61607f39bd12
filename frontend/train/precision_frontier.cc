#include "frontend/train/precision_frontier.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc {
namespace {

/// Ranks from 0; equal values share the mean of theirs.
std::vector<double> RanksOf(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto below = std::count_if(values.begin(), values.end(), [&](double other) { return other < value; });
    const auto equal = std::count(values.begin(), values.end(), value);
    ranks.push_back(static_cast<double>(below) + static_cast<double>(equal - 1) / 2);
  }
  return ranks;
}

}  // namespace

double PrecisionFrontier::RankCorrelation() const {
  std::vector<double> predicted, measured;
  for (const Point& point : points) {
    predicted.push_back(point.predicted_error);
    measured.push_back(point.measured_error);
  }
  const std::vector<double> a = RanksOf(predicted), b = RanksOf(measured);
  const double mean = (static_cast<double>(points.size()) - 1) / 2;
  double both = 0, first = 0, second = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean) * (b[i] - mean);
    first += (a[i] - mean) * (a[i] - mean);
    second += (b[i] - mean) * (b[i] - mean);
  }
  if (first == 0 || second == 0) return std::numeric_limits<double>::quiet_NaN();
  return both / std::sqrt(first * second);
}

std::string PrecisionFrontier::Table() const {
  std::string text = absl::StrFormat("%d open slots, %d corners, %d of them run\n", open_slots, corners,
                                     static_cast<std::int64_t>(points.size()));
  absl::StrAppend(&text, "  low  predicted us  measured us  predicted error  measured error     spread  loss error\n");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    absl::StrAppend(&text, absl::StrFormat("%5d  %12.3f  %11.1f  %15.3e  %14.3e  %9.2e  %10.3e%s\n", point.low_slots,
                                           point.predicted_seconds * 1e6, point.measured_seconds * 1e6,
                                           point.predicted_error, point.measured_error, point.error_spread,
                                           point.loss_error, chosen == i ? "  chosen" : ""));
  }
  if (points.size() > 2) {
    absl::StrAppend(&text,
                    absl::StrFormat("rank correlation of predicted and measured error: %.3f\n", RankCorrelation()));
  }
  return text;
}

}  // namespace mpc
