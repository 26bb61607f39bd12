#include "tools/support/flag_set.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/version.h"

namespace mpc::tools {
namespace {

absl::Status NotAccepted(const std::string& value, const std::string& accepted) {
  return absl::InvalidArgumentError(absl::StrCat("'", value, "' is not ", accepted));
}

/// What is accepted in place of `value`. The largest of all numbers is named to those who gave a larger one.
std::string RangeText(const std::string& value, std::int64_t minimum, std::int64_t maximum) {
  std::int64_t ignored = 0;
  const bool is_number = !value.empty() && std::all_of(value.begin(), value.end(), absl::ascii_isdigit);
  const bool is_too_large = is_number && !absl::SimpleAtoi(value, &ignored);
  if (maximum == std::numeric_limits<std::int64_t>::max() && !is_too_large) {
    return absl::StrCat("a whole number of at least ", minimum);
  }
  return absl::StrCat("a whole number from ", minimum, " to ", maximum);
}

/// How many characters have to be added, left out, replaced or exchanged with their neighbours.
std::size_t EditDistance(std::string_view from, std::string_view to) {
  std::vector<std::vector<std::size_t>> distance(from.size() + 1, std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      std::size_t& least = distance[i][j];
      if (i == 0 || j == 0) {
        least = i + j;
        continue;
      }
      least = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1,
                        distance[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        least = std::min(least, distance[i - 2][j - 2] + 1);
      }
    }
  }
  return distance.back().back();
}

std::string Canonical(std::string_view name) {
  std::string canonical(name);
  std::replace(canonical.begin(), canonical.end(), '_', '-');
  return canonical;
}

}  // namespace

absl::StatusOr<std::int64_t> ParseInteger(const std::string& value, std::int64_t minimum, std::int64_t maximum) {
  std::int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < minimum || number > maximum) {
    return NotAccepted(value, RangeText(value, minimum, maximum));
  }
  return number;
}

absl::StatusOr<bool> ParseSwitch(const std::string& value) {
  if (value == "true") return true;
  if (value == "false") return false;
  return NotAccepted(value, "true or false");
}

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
  flags_.back().false_is_absent = !*target;
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
  flags_.back().false_is_absent = is_switch;
}

void FlagSet::Limit(unsigned dimension, unsigned readers, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) Find(name)->readers &= ~dimension | readers;
}

FlagSet::Flag* FlagSet::Find(std::string_view name) {
  const auto found = std::find_if(flags_.begin(), flags_.end(),
                                  [canonical = Canonical(name)](const Flag& flag) { return flag.name == canonical; });
  return found == flags_.end() ? nullptr : &*found;
}

bool FlagSet::Given(std::string_view name) const {
  return std::any_of(flags_.begin(), flags_.end(),
                     [name](const Flag& flag) { return flag.name == name && flag.given; });
}

std::string FlagSet::FirstUnread(unsigned readers) const {
  const auto unread = std::find_if(flags_.begin(), flags_.end(),
                                   [readers](const Flag& flag) { return flag.given && (flag.readers & readers) == 0; });
  return unread == flags_.end() ? "" : "--" + unread->name;
}

std::string FlagSet::Suggestion(std::string_view unknown) const {
  constexpr std::size_t kMost = 3;  ///< more help no one
  const std::string name = Canonical(unknown.substr(std::min(unknown.find_first_not_of('-'), unknown.size())));
  std::size_t nearest = std::max<std::size_t>(1, name.size() / 3);
  std::vector<std::string> names, parts;
  for (const Flag& flag : flags_) {
    const std::size_t distance = EditDistance(name, flag.name);
    if (distance < nearest) names.clear();
    if (distance <= nearest) names.push_back("--" + flag.name);
    nearest = std::min(nearest, distance);
    // "--level" for "--amp-level".
    if (name.size() > 2 && flag.name.find(name) != std::string::npos) parts.push_back("--" + flag.name);
  }
  if (names.empty()) names = parts;
  if (names.empty() || names.size() > kMost) return "";
  return absl::StrCat("; did you mean ", absl::StrJoin(names, " or "), "?");
}

absl::StatusOr<std::vector<std::string>> FlagSet::Parse(int argc, const char* const* argv) {
  std::vector<std::string> positional;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      help_requested_ = true;
      return positional;
    }
    if (argument == "--version") {
      help_requested_ = version_requested_ = true;
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
    Flag* flag = given.rfind("--", 0) == 0 ? Find(std::string_view(given).substr(2)) : nullptr;
    if (flag == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("unknown flag '", given, "'", Suggestion(given)));
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
    flag->given = value != "false" || !flag->false_is_absent;
  }
  return positional;
}

std::string FlagSet::Help() const {
  if (version_requested_) return absl::StrCat(program_, " ", MPC_VERSION, "\n");
  std::string text = absl::StrCat("usage: ", program_, " ", usage_, "\n\n", description_, "\n\n");
  for (const Flag& flag : flags_) {
    absl::StrAppend(&text, "  --", flag.name, flag.placeholder.empty() ? "" : "=", flag.placeholder, "\n      ",
                    absl::StrReplaceAll(flag.help, {{"\n", "\n      "}}),
                    flag.default_value.empty() ? "" : absl::StrCat(" (default ", flag.default_value, ")"), "\n");
  }
  absl::StrAppend(&text, "  --help\n      Prints this.\n  --version\n      Prints the version of mpc.\n");
  return text;
}

}  // namespace mpc::tools
