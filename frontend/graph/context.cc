#include "frontend/graph/context.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/head_chunks.h"
#include "kernels/cpu/kernel.h"
#include "runtime/executable.h"

namespace mpc {
namespace {

struct Settings {
  std::uint64_t seed = 0;
  std::int64_t next_stream = 0;
  std::uint64_t structure_version = 0;
  ContextOptions options;
};

constexpr int kMostStepsPerLaunch = 64;

absl::Status OnlyOn(const std::string& device, const ContextOptions& options, const std::string& given) {
  return absl::InvalidArgumentError(absl::StrCat(given, " and device = ", options.device,
                                                 " contradict each other: only device \"", device,
                                                 "\" has this option; leave it out, or use device \"", device, "\""));
}

absl::Status OnlyOnCuda(const ContextOptions& options, const std::string& given) {
  return OnlyOn("cuda", options, given);
}

Settings& Global() {
  static Settings settings;
  return settings;
}

}  // namespace

void SetSeed(std::uint64_t seed) {
  Global().seed = seed;
  Global().next_stream = 0;
}

std::uint64_t GetSeed() { return Global().seed; }

absl::Status CheckContext(const ContextOptions& options) {
  if (options.mode != "graph") {
    return absl::InvalidArgumentError(absl::StrCat("unknown mode '", options.mode,
                                                   "'; \"graph\" is the only mode: precision, gradients and loss scale "
                                                   "are decided on whole steps"));
  }
  if (options.num_threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_threads must be 0 (automatic) or more, got ", options.num_threads));
  }
  if (options.memory_budget < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory_budget must be 0 (none) or a number of bytes, got ", options.memory_budget));
  }
  if (options.head_chunks < 1 || options.head_chunks > kMostHeadChunks) {
    return absl::InvalidArgumentError(absl::StrCat("head_chunks must be from 1 (the head stays whole) to ",
                                                   kMostHeadChunks, ", got ", options.head_chunks));
  }
  if (options.steps_per_launch < 1 || options.steps_per_launch > kMostStepsPerLaunch) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps_per_launch must be from 1 to ", kMostStepsPerLaunch, ", got ", options.steps_per_launch));
  }
  if (options.device == "cpu") {
    if (!options.arch.empty()) return OnlyOnCuda(options, absl::StrCat("arch = ", options.arch));
    if (options.graph.has_value()) return OnlyOnCuda(options, *options.graph ? "graph = on" : "graph = off");
    if (options.steps_per_launch > 1) {
      return OnlyOnCuda(options, absl::StrCat("steps_per_launch = ", options.steps_per_launch));
    }
    if (options.pad_classes.value_or(false)) return OnlyOnCuda(options, "pad_classes = true");
    if (options.allow_tf32) return OnlyOnCuda(options, "allow_tf32 = true");
    if (options.allow_conv_statistics) return OnlyOnCuda(options, "allow_conv_statistics = true");
  } else if (options.allow_winograd) {
    return OnlyOn("cpu", options, "allow_winograd = true");
  }
  if (options.steps_per_launch > 1 && !options.graph.value_or(true)) {
    return absl::InvalidArgumentError(absl::StrCat("steps_per_launch = ", options.steps_per_launch,
                                                   " and graph = off contradict each other: several steps are one ",
                                                   "launch only as a graph"));
  }
  return absl::OkStatus();
}

absl::Status SetContext(const ContextOptions& options) {
  if (absl::Status status = CheckContext(options); !status.ok()) return status;
  if (absl::Status status = runtime::GetTarget(options.device, options.arch).status(); !status.ok()) return status;
  if (options.num_threads > 0) cpu::SetNumThreads(options.num_threads);
  Global().options = options;
  return absl::OkStatus();
}

const ContextOptions& GetContext() { return Global().options; }

namespace internal {

std::int64_t NextStream() { return Global().next_stream++; }
std::uint64_t StructureVersion() { return Global().structure_version; }
void StructureChanged() { ++Global().structure_version; }

}  // namespace internal

}  // namespace mpc
