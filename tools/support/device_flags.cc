#include "tools/support/device_flags.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_replace.h"
#include "compiler/dialect/head_chunks.h"
#include "runtime/executable.h"
#include "tools/support/byte_size.h"

namespace mpc::tools {

void AddDeviceFlags(FlagSet& flags, DeviceOptions& options) {
  flags.Text("device", "cpu|cuda", "Where to run.", &options.device);
  flags.Switch("fusion", "Computes neighbouring operations in one generated kernel. Default: on the CPU.",
               &options.fusion);
  flags.Custom(
      "memory-budget", "BYTES",
      "What a step may plan for arena, state and constants (1GiB, 512MiB): a language model's head is computed "
      "in chunks and values are computed again in the backward pass until it fits. Default: no limit.",
      /*is_switch=*/false, [&options](const std::string& value) {
        absl::StatusOr<std::int64_t> bytes = ParseByteSize(value);
        if (bytes.ok()) options.memory_budget = *bytes;
        return bytes.status();
      });
  flags.Integer("head-chunks", 1, kMostHeadChunks,
                "Chunks of rows that a language model's head is computed in, so that fewer logits live at a time.",
                &options.head_chunks);
  flags.Custom("graph", "on|off",
               "cuda: replays a step as one graph, or starts its kernels one by one; the same bits. Default on.",
               /*is_switch=*/false, [&options](const std::string& value) {
                 if (value != "on" && value != "off") {
                   return absl::InvalidArgumentError("'" + value + "' is not on or off");
                 }
                 options.graph = value;
                 return absl::OkStatus();
               });
  flags.Integer("steps-per-launch", 1, 64,
                "cuda: steps that one graph holds; for networks whose steps are shorter than a launch. The same bits.",
                &options.steps_per_launch);
  flags.Switch("allow-tf32", "cuda: f32 products on tensor cores, with 10 bits of mantissa.", &options.allow_tf32);
  flags.Switch("allow-conv-statistics",
               "cuda: f16 convolutions compute the statistics of the batch normalisation behind them, with f32 sums.",
               &options.allow_conv_statistics);
  flags.Switch("allow-winograd",
               "cpu: f32 convolutions with 3x3 windows by Winograd's algorithm, which is faster and rounds more.",
               &options.allow_winograd);
  flags.Switch("tune", "Chooses kernels by timing them, not by rules and the libraries' heuristics.", &options.tune);
  flags.Custom(
      "choice-cache", "FILE",
      "Kernel choices of earlier runs, read and written; empty: none. Default: in the user's cache folder, on the CPU "
      "with --tune alone.",
      /*is_switch=*/false, [&options](const std::string& value) {
        options.choice_cache = value;
        return absl::OkStatus();
      });
}

std::string UserChoiceCache() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return "";
  }
  folder /= "mpc";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? "" : (folder / "choices").string();
}

ContextOptions ContextOf(const DeviceOptions& options, std::int64_t threads) {
  ContextOptions context;
  context.device = options.device;
  context.num_threads = static_cast<int>(threads);
  context.fusion = options.fusion;
  context.memory_budget = options.memory_budget;
  context.head_chunks = options.head_chunks;
  context.arch = options.arch;
  if (!options.graph.empty()) context.graph = options.graph == "on";
  context.steps_per_launch = static_cast<int>(options.steps_per_launch);
  context.allow_tf32 = options.allow_tf32;
  context.allow_conv_statistics = options.allow_conv_statistics;
  context.allow_winograd = options.allow_winograd;
  context.tune = options.tune;
  // Choices are measured on a GPU that is here, not on one that is only compiled for. On the CPU what was measured once
  // does not change what a command computes that does not ask for it.
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
