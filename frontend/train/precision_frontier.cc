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

bool PrecisionFrontier::Point::Keeps(const PrecisionFrontierOptions& options) const {
  return measured.bound.gradient <= options.max_gradient_error.value_or(std::numeric_limits<double>::infinity()) &&
         measured.bound.loss <= options.max_loss_error.value_or(std::numeric_limits<double>::infinity());
}

double PrecisionFrontier::RankCorrelation(FrontierError of) const {
  std::vector<double> predicted, measured;
  for (const Point& point : points) {
    predicted.push_back(point.predicted.Of(of));
    measured.push_back(point.measured.rms.Of(of));
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
  absl::StrAppend(&text,
                  "                                   gradient error                   loss error\n"
                  "  low  predicted us   measured us  predicted  measured   at most  predicted  measured   at most\n");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    absl::StrAppend(&text, absl::StrFormat("%5d  %12.3f  %12.1f", point.low_slots, point.predicted_seconds * 1e6,
                                           point.measured_seconds * 1e6));
    for (const FrontierError which : {FrontierError::kGradient, FrontierError::kLoss}) {
      absl::StrAppend(&text, absl::StrFormat("  %9.2e %9.2e %9.2e", point.predicted.Of(which),
                                             point.measured.rms.Of(which), point.measured.bound.Of(which)));
    }
    absl::StrAppend(&text, chosen == i ? "  chosen\n" : "\n");
  }
  if (points.size() > 2) {
    absl::StrAppend(&text,
                    absl::StrFormat("rank correlation of predicted and measured errors: gradient %.3f, loss "
                                    "%.3f\n",
                                    RankCorrelation(FrontierError::kGradient), RankCorrelation(FrontierError::kLoss)));
  }
  return text;
}

}  // namespace mpc
