#include "tools/support/device_flags.h"

#include <filesystem>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/strings/str_replace.h"
#include "compiler/dialect/head_chunks.h"
#include "compiler/options/compile_options.h"
#include "runtime/cache_folder.h"
#include "runtime/executable.h"
#include "tools/support/byte_size.h"

namespace mpc::tools {

namespace {

using DeviceFlag = OptionFlag<DeviceOptions>;

/// A flag that says what is compiled: `option` is its name among the compiler's options.
DeviceFlag Compiles(std::string name, std::string placeholder, const char* option,
                    std::function<absl::Status(const std::string&, DeviceOptions&)> set) {
  return {std::move(name), std::move(placeholder), compiler::optionHelp(option), false, std::move(set)};
}

DeviceFlag Text(std::string name, std::string placeholder, const char* option, std::string DeviceOptions::*member) {
  return Compiles(std::move(name), std::move(placeholder), option,
                  [member](const std::string& value, DeviceOptions& options) {
                    if (value.empty()) return absl::InvalidArgumentError("the value is empty");
                    options.*member = value;
                    return absl::OkStatus();
                  });
}

template <typename Flag>
DeviceFlag Switch(std::string name, const char* option, Flag DeviceOptions::*member) {
  DeviceFlag flag = Compiles(std::move(name), "", option, [member](const std::string& value, DeviceOptions& options) {
    const absl::StatusOr<bool> on = ParseSwitch(value);
    if (on.ok()) options.*member = *on;
    return on.status();
  });
  flag.is_switch = true;
  if (!std::is_same_v<Flag, bool>) flag.placeholder = "true|false";
  return flag;
}

std::function<absl::Status(const std::string&, DeviceOptions&)> SetInteger(std::int64_t minimum, std::int64_t maximum,
                                                                           std::int64_t DeviceOptions::*member) {
  return [=](const std::string& value, DeviceOptions& options) {
    const absl::StatusOr<std::int64_t> number = ParseInteger(value, minimum, maximum);
    if (number.ok()) options.*member = *number;
    return number.status();
  };
}

absl::Status SetMemoryBudget(const std::string& value, DeviceOptions& options) {
  const absl::StatusOr<std::int64_t> bytes = ParseByteSize(value);
  if (bytes.ok()) options.memory_budget = *bytes;
  return bytes.status();
}

absl::Status SetGraph(const std::string& value, DeviceOptions& options) {
  if (value != "on" && value != "off") return absl::InvalidArgumentError("'" + value + "' is not on or off");
  options.graph = value;
  return absl::OkStatus();
}

std::vector<DeviceFlag> MakeFlags() {
  std::vector<DeviceFlag> flags;
  flags.push_back(Text("device", "cpu|cuda", "device", &DeviceOptions::device));
  flags.push_back(Text("arch", "sm_80|sm_90", "arch", &DeviceOptions::arch));
  flags.push_back(Switch("fusion", "fusion", &DeviceOptions::fusion));
  flags.push_back(Compiles("memory-budget", "BYTES", "memory_budget", SetMemoryBudget));
  flags.push_back(
      Compiles("head-chunks", "N", "head_chunks", SetInteger(1, kMostHeadChunks, &DeviceOptions::head_chunks)));
  flags.push_back(Switch("pad-classes", "pad_classes", &DeviceOptions::pad_classes));
  flags.push_back({"graph", "on|off",
                   "cuda: replays a step as one graph, or starts its kernels one by one; the same bits. Default on.",
                   false, SetGraph});
  flags.push_back({"steps-per-launch", "N",
                   "cuda: steps that one graph holds; for networks whose steps are shorter than a launch. The same "
                   "bits. Default 1.",
                   false, SetInteger(1, 64, &DeviceOptions::steps_per_launch)});
  flags.push_back(Switch("allow-tf32", "plan.allow_tf32", &DeviceOptions::allow_tf32));
  flags.push_back(Switch("allow-conv-statistics", "conv_statistics", &DeviceOptions::allow_conv_statistics));
  flags.push_back(Switch("allow-winograd", "plan.allow_winograd", &DeviceOptions::allow_winograd));
  flags.push_back(Switch("tune", "plan.tune", &DeviceOptions::tune));
  flags.push_back(
      Compiles("choice-cache", "FILE", "plan.choice_cache", [](const std::string& value, DeviceOptions& options) {
        options.choice_cache = value;
        return absl::OkStatus();
      }));
  return flags;
}

}  // namespace

bool DeviceOptions::fuses() const { return compiler::CompileOptions{.fusion = fusion, .device = device}.fuses(); }

const std::vector<DeviceFlag>& DeviceFlags() {
  static const std::vector<DeviceFlag>* const flags = new std::vector<DeviceFlag>(MakeFlags());
  return *flags;
}

bool IsOfRunning(std::string_view flag) { return flag == "graph" || flag == "steps-per-launch"; }

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

ContextOptions ContextOf(const DeviceOptions& options, std::int64_t threads) {
  ContextOptions context;
  context.device = options.device;
  context.num_threads = static_cast<int>(threads);
  context.fusion = options.fusion;
  context.memory_budget = options.memory_budget;
  context.head_chunks = options.head_chunks;
  context.pad_classes = options.pad_classes;
  context.arch = options.arch;
  if (!options.graph.empty()) context.graph = options.graph == "on";
  context.steps_per_launch = static_cast<int>(options.steps_per_launch);
  context.allow_tf32 = options.allow_tf32;
  context.allow_conv_statistics = options.allow_conv_statistics;
  context.allow_winograd = options.allow_winograd;
  context.tune = options.tune;
  // Choices are measured on a GPU that is here, not on one that is only compiled for. On the CPU, earlier measurements
  // do not change what a command computes unless it asks for them.
  const bool measures = (options.device == "cuda" && options.arch.empty()) || (options.device == "cpu" && options.tune);
  context.choice_cache = options.choice_cache.value_or(measures ? UserChoiceCache() : "");
  return context;
}

absl::Status CheckDeviceFlags(const DeviceOptions& options) {
  DeviceOptions checked = options;
  // A check makes no folder.
  if (!checked.choice_cache.has_value()) checked.choice_cache = "";
  absl::Status status = CheckContext(ContextOf(checked, 0));
  if (!status.ok()) {
    // The flags' names.
    const std::string message =
        absl::StrReplaceAll(status.message(), {{"steps_per_launch = ", "--steps-per-launch="},
                                               {"head_chunks must", "--head-chunks must"},
                                               {"device = ", "--device="},
                                               {"arch = ", "--arch="},
                                               {"graph = ", "--graph="},
                                               {"pad_classes = true", "--pad-classes"},
                                               {"allow_tf32 = true", "--allow-tf32"},
                                               {"allow_conv_statistics = true", "--allow-conv-statistics"},
                                               {"allow_winograd = true", "--allow-winograd"},
                                               {"tune = true", "--tune"},
                                               {"choice_cache = ", "--choice-cache="}});
    return absl::Status(status.code(), message);
  }
  return runtime::GetTarget(options.device, options.arch).status();
}

}  // namespace mpc::tools
