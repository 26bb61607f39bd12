#include "frontend/inspect/overflow_diagnosis.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc {
namespace {

constexpr double kLargestF16 = 65504.0;

constexpr int kMostComputed = 5;

bool IsSource(const ValueStatistics& value) {
  return value.operation == "parameter" || value.operation == "statistic" || value.operation == "input";
}

bool IsBad(const ValueStatistics& value) { return value.not_finite() > 0; }

std::string DescribeBad(const ValueStatistics& value) {
  return absl::StrFormat("%s, %d of %d elements", value.Describe(), value.not_finite(), value.count());
}

/// The first values that operations computed and that are not finite.
std::string DescribeComputed(const std::vector<ValueStatistics>& values) {
  std::string text;
  int found = 0;
  for (const ValueStatistics& value : values) {
    if (IsSource(value) || !IsBad(value) || ++found > kMostComputed) continue;
    absl::StrAppend(&text, "computed and not finite: ", DescribeBad(value), "\n");
  }
  if (found > kMostComputed) absl::StrAppend(&text, "and ", found - kMostComputed, " values more\n");
  return text;
}

}  // namespace

std::string DiagnoseOverflow(const std::vector<ValueStatistics>& values, double loss_scale) {
  const auto bad = std::find_if(values.begin(), values.end(), IsBad);
  std::string text;
  if (bad == values.end()) {
    text = absl::StrFormat(
        "every value is finite at loss scale %.17g: the gradients overflow only when they are divided by it\n",
        loss_scale);
  } else {
    text = absl::StrFormat("first value that is not finite at loss scale %.17g: %s\n", loss_scale, DescribeBad(*bad));
  }
  const auto largest = std::max_element(
      values.begin(), bad, [](const ValueStatistics& a, const ValueStatistics& b) { return a.largest < b.largest; });
  if (largest != bad && largest->largest > 0) {
    absl::StrAppendFormat(&text, "largest finite magnitude before it: %g, %s\n", largest->largest, largest->Describe());
  }
  if (bad != values.end() && bad->largest > 0) {
    absl::StrAppendFormat(&text, "largest finite magnitude in it: %g\n", bad->largest);
  }
  const bool stores_f16 = std::any_of(values.begin(), values.end(),
                                      [](const ValueStatistics& value) { return value.dtype == DType::kF16; });
  for (const ValueStatistics& value : values) {
    if (!IsSource(value)) continue;
    if (value.not_finite() == value.count() && IsBad(value)) {
      absl::StrAppend(&text, value.Describe(), ": none of its elements is finite\n");
    } else if (IsBad(value)) {
      absl::StrAppendFormat(&text, "%s: %d of its %d elements are not finite, the largest other magnitude is %g\n",
                            value.Describe(), value.not_finite(), value.count(), value.largest);
    }
    if (stores_f16 && value.largest > kLargestF16) {
      absl::StrAppendFormat(&text, "%s does not fit f16: largest finite magnitude %g\n", value.Describe(),
                            value.largest);
    }
  }
  // What is not finite may be meant, as in a mask. The fault is among what follows then.
  if (bad != values.end() && IsSource(*bad)) absl::StrAppend(&text, DescribeComputed(values));
  return text;
}

}  // namespace mpc
