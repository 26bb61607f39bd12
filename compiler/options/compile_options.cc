#include "compiler/options/compile_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cassert>
#include <type_traits>

namespace mpc::compiler {
namespace {

// Lengths stand before texts, so that no text can look like two options.
void append(const std::string &Text, std::string &Key) { absl::StrAppend(&Key, Text.size(), ":", Text); }

template <typename Number> void append(const Number &Value, std::string &Key) {
  if constexpr (std::is_floating_point_v<Number>)
    absl::StrAppendFormat(&Key, "%.17g", Value); // digits that tell any two numbers apart
  else
    absl::StrAppend(&Key, Value);
}

template <typename Value> void append(const std::optional<Value> &Given, std::string &Key) {
  if (Given)
    append(*Given, Key);
  else
    absl::StrAppend(&Key, "default");
}

void append(const std::vector<std::string> &Entries, std::string &Key) {
  absl::StrAppend(&Key, Entries.size(), ":");
  for (const std::string &Entry : Entries)
    append(Entry, Key);
}

void append(const PrecisionMap &Slots, std::string &Key) {
  absl::StrAppend(&Key, Slots.size(), ":");
  for (const auto &[Slot, Type] : Slots) {
    append(Slot, Key);
    append(Type, Key);
  }
}

} // namespace

const char *optionHelp(std::string_view Name) {
  const char *Help = nullptr;
  const CompileOptions Defaults;
  visitOptions(Defaults, [&](const OptionInfo &Info, const auto &) {
    if (Info.name == Name)
      Help = Info.help;
  });
  assert(Help && "no such option");
  return Help;
}

std::string programKey(const CompileOptions &Options) {
  std::string Key;
  visitOptions(Options, [&](const OptionInfo &Info, const auto &Value) {
    if (Info.kind == OptionKind::kOfCompilation)
      return;
    absl::StrAppend(&Key, "|", Info.name, "=");
    append(Value, Key);
  });
  return Key;
}

} // namespace mpc::compiler
