#include "compiler/options/compile_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cassert>
#include <type_traits>

namespace mpc::compiler {
namespace {

// Lengths stand before texts, so that no text can look like two options.
void append(const std::string &text, std::string &key) { absl::StrAppend(&key, text.size(), ":", text); }

template <typename Number> void append(const Number &value, std::string &key) {
  if constexpr (std::is_floating_point_v<Number>)
    absl::StrAppendFormat(&key, "%.17g", value); // digits that tell any two numbers apart
  else
    absl::StrAppend(&key, value);
}

template <typename Value> void append(const std::optional<Value> &given, std::string &key) {
  if (given)
    append(*given, key);
  else
    absl::StrAppend(&key, "default");
}

void append(const std::vector<std::string> &entries, std::string &key) {
  absl::StrAppend(&key, entries.size(), ":");
  for (const std::string &entry : entries)
    append(entry, key);
}

void append(const PrecisionMap &slots, std::string &key) {
  absl::StrAppend(&key, slots.size(), ":");
  for (const auto &[slot, type] : slots) {
    append(slot, key);
    append(type, key);
  }
}

} // namespace

const char *optionHelp(std::string_view name) {
  const char *help = nullptr;
  const CompileOptions defaults;
  visitOptions(defaults, [&](const OptionInfo &info, const auto &) {
    if (info.name == name)
      help = info.help;
  });
  assert(help && "no such option");
  return help;
}

std::string programKey(const CompileOptions &options) {
  std::string key;
  visitOptions(options, [&](const OptionInfo &info, const auto &value) {
    if (info.kind == OptionKind::OfCompilation)
      return;
    absl::StrAppend(&key, "|", info.name, "=");
    append(value, key);
  });
  return key;
}

} // namespace mpc::compiler
