#include "compiler/options/option_texts.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <optional>
#include <set>

namespace mpc::compiler {
namespace {

constexpr char trueText[] = "true";
constexpr char falseText[] = "false";

// NOLINTBEGIN(readability-identifier-naming): overloads of one name, as in compile_options.cc.
std::optional<std::string> textOf(const std::string &value) { return value; }
std::optional<std::string> textOf(bool value) { return value ? trueText : falseText; }
std::optional<std::string> textOf(std::int64_t value) { return absl::StrCat(value); }
std::optional<std::string> textOf(unsigned value) { return absl::StrCat(value); }
std::optional<std::string> textOf(double value) { return absl::StrFormat("%.17g", value); }
std::optional<std::string> textOf(const std::vector<std::string> &values) { return absl::StrJoin(values, "\n"); }
std::optional<std::string> textOf(const PrecisionMap &slots) {
  return absl::StrJoin(slots, "\n", absl::PairFormatter("\t"));
}
template <typename Value> std::optional<std::string> textOf(const std::optional<Value> &value) {
  return value ? textOf(*value) : std::nullopt;
}

bool parse(const std::string &text, std::string &value) {
  value = text;
  return true;
}
bool parse(const std::string &text, bool &value) {
  value = text == trueText;
  return value || text == falseText;
}
bool parse(const std::string &text, std::int64_t &value) { return absl::SimpleAtoi(text, &value); }
bool parse(const std::string &text, unsigned &value) { return absl::SimpleAtoi(text, &value); }
bool parse(const std::string &text, double &value) { return absl::SimpleAtod(text, &value); }
bool parse(const std::string &text, std::vector<std::string> &values) {
  if (!text.empty())
    values = absl::StrSplit(text, '\n');
  return true;
}
bool parse(const std::string &text, PrecisionMap &slots) {
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    std::vector<std::string> parts = absl::StrSplit(line, '\t');
    if (parts.size() != 2)
      return false;
    slots[parts[0]] = parts[1];
  }
  return true;
}
template <typename Value> bool parse(const std::string &text, std::optional<Value> &value) {
  return parse(text, value.emplace());
}
// NOLINTEND(readability-identifier-naming)

} // namespace

std::map<std::string, std::string> optionTexts(const CompileOptions &options) {
  std::map<std::string, std::string> texts;
  visitOptions(options, [&](const OptionInfo &info, const auto &value) {
    if (info.kind == OptionKind::OfCompilation)
      return;
    if (std::optional<std::string> text = textOf(value))
      texts[info.name] = *text;
  });
  return texts;
}

absl::StatusOr<CompileOptions> parseOptionTexts(const std::map<std::string, std::string> &texts) {
  CompileOptions options;
  absl::Status status;
  std::set<std::string> known;
  visitOptions(options, [&](const OptionInfo &info, auto &value) {
    known.insert(info.name);
    auto text = texts.find(info.name);
    if (text != texts.end() && !parse(text->second, value))
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("the option \"", info.name, "\" of a compilation cannot be '", text->second, "'")));
  });
  for (const auto &[name, text] : texts)
    if (!known.contains(name))
      status.Update(absl::InvalidArgumentError(absl::StrCat("a compilation has no option \"", name, "\"")));
  if (!status.ok())
    return status;
  return options;
}

} // namespace mpc::compiler
