#include "frontend/train/mean_iou.h"

#include "absl/strings/str_cat.h"

namespace mpc {

absl::StatusOr<std::vector<std::optional<double>>> MeanIoU::PerClass() const {
  if (counts().total() == 0) return internal::NoBatch();
  std::vector<std::optional<double>> quotients;
  for (std::int64_t c = 0; c < counts().classes(); ++c) {
    const std::int64_t both = counts().Right(c);
    const std::int64_t either = counts().Labelled(c) + counts().Predicted(c) - both;
    std::optional<double>& quotient = quotients.emplace_back();
    if (either > 0) quotient = static_cast<double>(both) / static_cast<double>(either);
  }
  return quotients;
}

absl::StatusOr<double> MeanIoU::Eval() const {
  absl::StatusOr<std::vector<std::optional<double>>> quotients = PerClass();
  if (!quotients.ok()) return quotients.status();
  double sum = 0;
  int classes = 0;
  for (const std::optional<double>& quotient : *quotients) {
    if (!quotient.has_value()) continue;
    sum += *quotient;
    ++classes;
  }
  return sum / classes;
}

absl::Status MeanIoU::Merge(const Metric& other) {
  const auto* same = dynamic_cast<const MeanIoU*>(&other);
  if (same == nullptr || same->options_ != options_) return internal::CannotMerge(*this, other);
  return MergeCounts(*same);
}

std::string MeanIoU::Description() const {
  return absl::StrCat("MeanIoU(ignore_label = ", internal::OrNone(options_.ignore_label), ")");
}

}  // namespace mpc
