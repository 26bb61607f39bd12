#include "tools/support/byte_size.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace mpc::tools {

absl::StatusOr<std::int64_t> ParseByteSize(std::string_view text) {
  constexpr double kLargest = 9e18;
  absl::string_view number(text.data(), text.size());
  double unit = 1;
  for (const auto& [suffix, bytes] :
       {std::pair<absl::string_view, double>{"KiB", 1024.0}, {"MiB", 1024.0 * 1024}, {"GiB", 1024.0 * 1024 * 1024}}) {
    if (absl::ConsumeSuffix(&number, suffix)) {
      unit = bytes;
      break;
    }
  }
  double value = 0;
  const bool is_number = absl::SimpleAtod(number, &value) && std::isfinite(value);
  const double bytes = value * unit;
  if (is_number && bytes > kLargest) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text), "' is more bytes than 64 bits count; give fewer KiB, MiB or GiB"));
  }
  if (!is_number || bytes < 1 || (unit == 1 && bytes != std::floor(bytes))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(text), "' is no size; give bytes, or a number with KiB, MiB or GiB, such as 512MiB"));
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace mpc::tools
