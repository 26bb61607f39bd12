#include "frontend/graph/context.h"

#include "frontend/graph/context_fields.h"
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
