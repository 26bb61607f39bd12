#include "frontend/context.h"

#include "absl/strings/str_cat.h"
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

absl::Status SetContext(const ContextOptions& options) {
  if (options.mode != "graph") {
    return absl::InvalidArgumentError(absl::StrCat("unknown mode '", options.mode,
                                                   "'; \"graph\" is the only mode: precision, gradients and loss scale "
                                                   "are decided on whole steps"));
  }
  if (absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(options.device); !device.ok()) {
    return device.status();
  }
  if (options.num_threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_threads must be 0 (automatic) or more, got ", options.num_threads));
  }
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
