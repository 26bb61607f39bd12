#include "tools/support/flag_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::tools {
namespace {

absl::Status NotAccepted(const std::string& value, const std::string& accepted) {
  return absl::InvalidArgumentError(absl::StrCat("'", value, "' is not ", accepted));
}

std::string RangeText(std::int64_t minimum, std::int64_t maximum) {
  if (maximum == std::numeric_limits<std::int64_t>::max()) {
    return absl::StrCat("a whole number of at least ", minimum);
  }
  return absl::StrCat("a whole number from ", minimum, " to ", maximum);
}

absl::StatusOr<std::int64_t> ParseInteger(const std::string& value, std::int64_t minimum, std::int64_t maximum) {
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < minimum || number > maximum) {
    return NotAccepted(value, RangeText(minimum, maximum));
  }
  return number;
}

absl::StatusOr<bool> ParseSwitch(const std::string& value) {
  if (value == "true") return true;
  if (value == "false") return false;
  return NotAccepted(value, "true or false");
}

}  // namespace

FlagSet::FlagSet(std::string program, std::string usage, std::string description)
    : program_(std::move(program)), usage_(std::move(usage)), description_(std::move(description)) {}

void FlagSet::Text(std::string name, std::string placeholder, std::string help, std::string* target) {
  flags_.push_back(
      {std::move(name), std::move(placeholder), std::move(help), *target, false, [target](const std::string& value) {
         if (value.empty()) return absl::InvalidArgumentError("the value is empty");
         *target = value;
         return absl::OkStatus();
       }});
}

void FlagSet::Choice(std::string name, std::vector<std::string> choices, std::string help, std::string* target) {
  std::string placeholder = absl::StrJoin(choices, "|");
  flags_.push_back({std::move(name), std::move(placeholder), std::move(help), *target, false,
                    [target, choices = std::move(choices)](const std::string& value) {
                      if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
                        return NotAccepted(value, absl::StrCat("one of ", absl::StrJoin(choices, ", ")));
                      }
                      *target = value;
                      return absl::OkStatus();
                    }});
}

void FlagSet::Integer(std::string name, std::int64_t minimum, std::int64_t maximum, std::string help,
                      std::int64_t* target) {
  flags_.push_back({std::move(name), "N", std::move(help), absl::StrCat(*target), false, [=](const std::string& value) {
                      const absl::StatusOr<std::int64_t> number = ParseInteger(value, minimum, maximum);
                      if (number.ok()) *target = *number;
                      return number.status();
                    }});
}

void FlagSet::Integer(std::string name, std::int64_t minimum, std::int64_t maximum, std::string help,
                      std::optional<std::int64_t>* target) {
  flags_.push_back({std::move(name), "N", std::move(help), "", false, [=](const std::string& value) {
                      const absl::StatusOr<std::int64_t> number = ParseInteger(value, minimum, maximum);
                      if (number.ok()) *target = *number;
                      return number.status();
                    }});
}

void FlagSet::Number(std::string name, double minimum, std::string help, std::optional<double>* target) {
  flags_.push_back({std::move(name), "X", std::move(help), "", false, [=](const std::string& value) {
                      double number = 0;
                      if (!absl::SimpleAtod(value, &number) || !std::isfinite(number) || number < minimum) {
                        return NotAccepted(value, absl::StrCat("a number of at least ", minimum));
                      }
                      *target = number;
                      return absl::OkStatus();
                    }});
}

void FlagSet::Switch(std::string name, std::string help, bool* target) {
  flags_.push_back({std::move(name), "", std::move(help), "", true, [target](const std::string& value) {
                      const absl::StatusOr<bool> on = ParseSwitch(value);
                      if (on.ok()) *target = *on;
                      return on.status();
                    }});
}

void FlagSet::Switch(std::string name, std::string help, std::optional<bool>* target) {
  flags_.push_back({std::move(name), "true|false", std::move(help), "", true, [target](const std::string& value) {
                      const absl::StatusOr<bool> on = ParseSwitch(value);
                      if (on.ok()) *target = *on;
                      return on.status();
                    }});
}

void FlagSet::Custom(std::string name, std::string placeholder, std::string help, bool is_switch,
                     std::function<absl::Status(const std::string& value)> set) {
  flags_.push_back({std::move(name), std::move(placeholder), std::move(help), "", is_switch, std::move(set)});
}

const FlagSet::Flag* FlagSet::Find(std::string_view name) const {
  std::string canonical(name);
  std::replace(canonical.begin(), canonical.end(), '_', '-');
  const auto found =
      std::find_if(flags_.begin(), flags_.end(), [&](const Flag& flag) { return flag.name == canonical; });
  return found == flags_.end() ? nullptr : &*found;
}

absl::StatusOr<std::vector<std::string>> FlagSet::Parse(int argc, const char* const* argv) {
  std::vector<std::string> positional;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      help_requested_ = true;
      return positional;
    }
    if (argument == "--") {
      positional.insert(positional.end(), argv + i + 1, argv + argc);
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      positional.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string given = argument.substr(0, equals);
    const Flag* flag = given.rfind("--", 0) == 0 ? Find(std::string_view(given).substr(2)) : nullptr;
    if (flag == nullptr) {
      std::vector<std::string> names;
      for (const Flag& known : flags_) names.push_back("--" + known.name);
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag '", given, "'; accepted: ", absl::StrJoin(names, ", "), ", --help"));
    }
    std::string value = "true";
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (!flag->is_switch) {
      if (i + 1 == argc) return absl::InvalidArgumentError(absl::StrCat("--", flag->name, " needs a value"));
      value = argv[++i];
    }
    if (absl::Status status = flag->set(value); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag->name, ": ", status.message()));
    }
  }
  return positional;
}

std::string FlagSet::Help() const {
  std::string text = absl::StrCat("usage: ", program_, " ", usage_, "\n\n", description_, "\n\n");
  for (const Flag& flag : flags_) {
    absl::StrAppend(&text, "  --", flag.name, flag.placeholder.empty() ? "" : "=", flag.placeholder, "\n      ",
                    flag.help, flag.default_value.empty() ? "" : absl::StrCat(" (default ", flag.default_value, ")"),
                    "\n");
  }
  absl::StrAppend(&text, "  --help\n      Prints this.\n");
  return text;
}

}  // namespace mpc::tools
