#include "tools/support/device_flags.h"

#include <concepts>
#include <filesystem>
#include <optional>
#include <system_error>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/options/compile_options.h"
#include "frontend/graph/context_fields.h"
#include "runtime/cache_folder.h"
#include "runtime/executable.h"
#include "tools/support/byte_size.h"
#include "tools/support/path_flags.h"

namespace mpc::tools {
namespace {

using DeviceFlag = OptionFlag<DeviceOptions>;

std::string FlagNameOf(std::string_view name) { return absl::StrReplaceAll(std::string(name), {{"_", "-"}}); }

/// The namer of tools: "--graph=off", "--allow-tf32".
std::string FlagOf(const ContextField& field, std::string_view text) { return FlagText(field.name, text); }

absl::Status Read(const ContextField& field, const std::string& value, std::string& member) {
  if (value.empty() && std::string_view(field.placeholder) != "FILE") {
    return absl::InvalidArgumentError("the value is empty");
  }
  member = value;
  return absl::OkStatus();
}

template <typename Switch>
requires(std::same_as<Switch, bool> || std::same_as<Switch, std::optional<bool>>) absl::Status
    Read(const ContextField& field, const std::string& value, Switch& member) {
  if (std::string_view(field.placeholder) == "on|off") {
    if (value != "on" && value != "off") return absl::InvalidArgumentError("'" + value + "' is not on or off");
    member = value == "on";
    return absl::OkStatus();
  }
  const absl::StatusOr<bool> on = ParseSwitch(value);
  if (on.ok()) member = *on;
  return on.status();
}

template <typename Number>
requires(std::integral<Number> && !std::same_as<Number, bool>) absl::Status
    Read(const ContextField& field, const std::string& value, Number& member) {
  const bool is_bytes = std::string_view(field.placeholder) == "BYTES";
  const absl::StatusOr<std::int64_t> number =
      is_bytes ? ParseByteSize(value) : ParseInteger(value, field.range.least, field.range.most);
  if (number.ok()) member = static_cast<Number>(*number);
  return number.status();
}

/// Reads `value` into the field called `name`.
absl::Status Set(std::string_view name, const std::string& value, DeviceOptions& options) {
  absl::Status status;
  VisitContext(options, [&](const ContextField& field, auto& member) {
    if (name == field.name) status = Read(field, value, member);
  });
  if (name == "choice_cache") options.choice_cache_is_given = true;
  return status;
}

std::vector<DeviceFlag> MakeFlags() {
  std::vector<DeviceFlag> flags;
  const ContextOptions defaults;
  VisitContext(defaults, [&](const ContextField& field, const auto& value) {
    if (*field.placeholder == '\0') return;
    const bool is_off_by_default = std::is_same_v<decltype(value), const bool&>;
    flags.push_back({.name = FlagNameOf(field.name),
                     .placeholder = is_off_by_default ? "" : field.placeholder,
                     .help = *field.option == '\0' ? field.help : compiler::optionHelp(field.option),
                     .is_switch = std::string_view(field.placeholder) == "true|false",
                     .set = [name = field.name](const std::string& value, DeviceOptions& options) {
                       return Set(name, value, options);
                     }});
  });
  return flags;
}

}  // namespace

bool DeviceOptions::fuses() const { return compiler::CompileOptions{.fusion = fusion, .device = device}.fuses(); }

const std::vector<DeviceFlag>& DeviceFlags() {
  static const std::vector<DeviceFlag>* const flags = new std::vector<DeviceFlag>(MakeFlags());
  return *flags;
}

bool IsOfRunning(std::string_view flag) {
  const ContextOptions defaults;
  bool is_of_running = false;
  VisitContext(defaults, [&](const ContextField& field, const auto&) {
    is_of_running = is_of_running || (FlagNameOf(field.name) == flag && *field.option == '\0');
  });
  return is_of_running;
}

void AddDeviceFlags(FlagSet& flags, DeviceOptions& options) {
  for (const DeviceFlag& flag : DeviceFlags()) {
    if (flag.name == "arch") continue;
    DeviceFlag shown = flag;
    if (flag.name == "choice-cache") {
      shown.help += " Default: in the user's cache folder, on the CPU with --tune alone.";
    }
    flags.Add(shown, options);
  }
}

std::string UserChoiceCache() {
  const std::string folder = runtime::UserCacheFolder();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  return folder.empty() || error ? "" : folder + "/choices";
}

std::string FlagText(std::string_view name, std::string_view text) {
  const std::string flag = "--" + FlagNameOf(name);
  return text.empty() || text == "true" ? flag : absl::StrCat(flag, "=", std::string(text));
}

std::vector<std::string> DeviceArguments(const DeviceOptions& options) {
  std::vector<std::string> arguments;
  for (const auto& [field, text, is_given] : ContextValues(options)) {
    if (is_given && *field.placeholder != '\0') arguments.push_back(FlagOf(field, text));
  }
  if (options.choice_cache_is_given && options.choice_cache.empty()) arguments.emplace_back("--choice-cache=");
  return arguments;
}

ContextOptions ContextOf(const DeviceOptions& options, std::int64_t threads) {
  ContextOptions context = options;
  context.num_threads = static_cast<int>(threads);
  // Choices are measured on a GPU that is here, not on one that is only compiled for. On the CPU, earlier measurements
  // do not change what a command computes unless it asks for them.
  const bool measures = (options.device == "cuda" && options.arch.empty()) || (options.device == "cpu" && options.tune);
  if (measures && !options.choice_cache_is_given) context.choice_cache = UserChoiceCache();
  return context;
}

absl::Status CheckDeviceFlags(const DeviceOptions& options) {
  if (absl::Status status = CheckContext(options, FlagOf); !status.ok()) return status;
  // A GPU's runs read and write the file, with and without --tune.
  if (options.device == "cpu") {
    if (absl::Status status = CheckChoiceCache(options.choice_cache, options.tune); !status.ok()) return status;
  }
  return runtime::GetTarget(options.device, options.arch).status();
}

}  // namespace mpc::tools
