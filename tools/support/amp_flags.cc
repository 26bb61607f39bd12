#include "tools/support/amp_flags.h"

#include <concepts>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mpc::tools {
namespace {

absl::Status Read(const std::string& value, std::string& level) {
  level = value;
  return value.empty() ? absl::InvalidArgumentError("choose O0, O1, O2, O3 or auto") : absl::OkStatus();
}

absl::Status Read(const std::string& value, amp::OptionValue& option) {
  option = value;
  return absl::OkStatus();
}

absl::Status Read(const std::string& value, std::vector<std::string>& list) {
  for (absl::string_view entry : absl::StrSplit(value, ',')) list.emplace_back(entry);
  return absl::OkStatus();
}

absl::Status Read(const std::string& value, bool& option) {
  const std::optional<bool> given = amp::OptionValue(value).AsBool();
  option = given.value_or(true);
  return given.has_value() ? absl::OkStatus()
                           : absl::InvalidArgumentError(absl::StrCat("'", value, "' is not true or false"));
}

template <typename Number>
requires std::integral<Number> absl::Status Read(const std::string& value, Number& option) {
  Number number = 0;
  if (!absl::SimpleAtoi(value, &number)) {
    return absl::InvalidArgumentError(absl::StrCat("'", value, "' is not a whole number"));
  }
  option = number;
  return absl::OkStatus();
}

/// Reads `value` into the option whose flag is `flag`.
absl::Status Set(std::string_view flag, const std::string& value, amp::Options& options) {
  absl::Status status;
  amp::VisitOptions(options, [&](const amp::OptionInfo& info, auto& option) {
    if (info.flag == flag) status = Read(value, option);
  });
  return status;
}

std::vector<AmpFlag> MakeFlags() {
  std::vector<AmpFlag> flags;
  const amp::Options defaults;
  amp::VisitOptions(defaults, [&](const amp::OptionInfo& info, const auto&) {
    const std::string flag = info.flag;
    flags.push_back({flag, info.placeholder, info.help, std::string_view(info.placeholder) == "true|false",
                     [flag](const std::string& value, amp::Options& options) { return Set(flag, value, options); }});
  });
  return flags;
}

}  // namespace

const std::vector<AmpFlag>& AmpFlags() {
  static const std::vector<AmpFlag>* const flags = new std::vector<AmpFlag>(MakeFlags());
  return *flags;
}

absl::Status CheckScaleLimits(const amp::Options& options, const amp::Precision& precision) {
  const amp::OptionValue& limit = options.min_loss_scale.given() ? options.min_loss_scale : options.max_loss_scale;
  if (!limit.given() || precision.loss_scale.mode == LossScaleConfig::Mode::kDynamic) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      options.min_loss_scale.given() ? "--min-loss-scale=" : "--max-loss-scale=", limit.text(),
      ": only a dynamic loss ", "scale has limits, and at level ", precision.level, " it is ",
      precision.loss_scale.mode == LossScaleConfig::Mode::kNone ? "none" : absl::StrCat(precision.loss_scale.init),
      "; leave the flag out, or give --loss-scale=dynamic"));
}

}  // namespace mpc::tools
