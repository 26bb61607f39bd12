#include "frontend/inspect/overflow_diagnosis.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace mpc {
namespace {

constexpr double kLargestF16 = 65504.0;

bool IsSource(const ValueStatistics& value) {
  return value.operation == "parameter" || value.operation == "statistic" || value.operation == "input";
}

}  // namespace

std::string DiagnoseOverflow(const std::vector<ValueStatistics>& values, double loss_scale) {
  const auto bad =
      std::find_if(values.begin(), values.end(), [](const ValueStatistics& value) { return value.not_finite() > 0; });
  std::string text;
  if (bad == values.end()) {
    text = absl::StrFormat(
        "every value is finite at loss scale %.17g: the gradients overflow only when they are divided by it\n",
        loss_scale);
  } else {
    text = absl::StrFormat("first value that is not finite at loss scale %.17g: %s, %d of %d elements\n", loss_scale,
                           bad->Describe(), bad->not_finite(), bad->count());
  }
  const auto largest = std::max_element(
      values.begin(), bad, [](const ValueStatistics& a, const ValueStatistics& b) { return a.largest < b.largest; });
  if (largest != bad && largest->largest > 0) {
    absl::StrAppendFormat(&text, "largest finite magnitude before it: %g, %s\n", largest->largest, largest->Describe());
  }
  if (bad != values.end() && bad->largest > 0) {
    absl::StrAppendFormat(&text, "largest finite magnitude in it: %g\n", bad->largest);
  }
  for (const ValueStatistics& value : values) {
    if (IsSource(value) && (value.largest > kLargestF16 || value.not_finite() > 0)) {
      const std::string largest_finite = value.not_finite() == value.count()
                                             ? "none of its elements is finite"
                                             : absl::StrFormat("largest finite magnitude %g", value.largest);
      absl::StrAppendFormat(&text, "%s does not fit f16: %s, %d elements not finite\n", value.Describe(),
                            largest_finite, value.not_finite());
    }
  }
  return text;
}

}  // namespace mpc
