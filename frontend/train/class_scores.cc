#include "frontend/train/class_scores.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace mpc {
namespace {

const char* Name(Average average) {
  switch (average) {
    case Average::kMacro:
      return "macro";
    case Average::kMicro:
      return "micro";
    case Average::kBinary:
      return "binary";
  }
  return "";
}

}  // namespace

absl::Status ClassScore::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) {
  // Classes are counted before the batch is, so that a refused batch leaves no trace.
  const bool several = predictions.concrete() && !internal::IsBinaryLogits(predictions) && predictions.rank() >= 2 &&
                       predictions.dim(1) != 2;
  if (options_.average == Average::kBinary && several) {
    return absl::InvalidArgumentError(absl::StrCat("Average::kBinary takes two classes, got ", predictions.dim(1),
                                                   " in predictions ", predictions.spec().ToString(),
                                                   "; Average::kMacro and Average::kMicro take any number"));
  }
  return CountingMetric::Update(loss, predictions, labels);
}

double ClassScore::Divide(std::pair<std::int64_t, std::int64_t> quotient) const {
  if (quotient.second == 0) return options_.zero_division;
  return static_cast<double>(quotient.first) / static_cast<double>(quotient.second);
}

absl::StatusOr<std::vector<double>> ClassScore::PerClass() const {
  if (counts().total() == 0) return internal::NoBatch();
  std::vector<double> quotients;
  for (std::int64_t c = 0; c < counts().classes(); ++c) quotients.push_back(Divide(Quotient(c)));
  return quotients;
}

absl::StatusOr<double> ClassScore::Eval() const {
  absl::StatusOr<std::vector<double>> quotients = PerClass();
  if (!quotients.ok()) return quotients.status();
  if (options_.average == Average::kBinary) return (*quotients)[1];
  if (options_.average == Average::kMacro) {
    return std::accumulate(quotients->begin(), quotients->end(), 0.0) / static_cast<double>(quotients->size());
  }
  std::pair<std::int64_t, std::int64_t> sums;
  for (std::int64_t c = 0; c < counts().classes(); ++c) {
    const auto [numerator, denominator] = Quotient(c);
    sums.first += numerator;
    sums.second += denominator;
  }
  return Divide(sums);
}

absl::Status ClassScore::Merge(const Metric& other) {
  const auto* same = dynamic_cast<const ClassScore*>(&other);
  if (same == nullptr || same->name_ != name_ || same->options_ != options_) {
    return internal::CannotMerge(*this, other);
  }
  return MergeCounts(*same);
}

std::string ClassScore::Description() const {
  return absl::StrCat(name_, "(average = ", Name(options_.average), ", zero_division = ", options_.zero_division,
                      ", ignore_label = ", internal::OrNone(options_.ignore_label), ")");
}

std::pair<std::int64_t, std::int64_t> Precision::Quotient(std::int64_t c) const {
  return {counts().Right(c), counts().Predicted(c)};
}

std::pair<std::int64_t, std::int64_t> Recall::Quotient(std::int64_t c) const {
  return {counts().Right(c), counts().Labelled(c)};
}

std::pair<std::int64_t, std::int64_t> F1::Quotient(std::int64_t c) const {
  return {2 * counts().Right(c), counts().Predicted(c) + counts().Labelled(c)};
}

}  // namespace mpc
