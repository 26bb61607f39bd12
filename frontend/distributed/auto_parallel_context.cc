#include "frontend/distributed/auto_parallel_context.h"

#include <string_view>

#include "absl/strings/str_cat.h"

namespace mpc {
namespace {

AutoParallelOptions& Context() {
  static auto* const context = new AutoParallelOptions;
  return *context;
}

absl::string_view Name(ParallelMode mode) {
  switch (mode) {
    case ParallelMode::kStandAlone:
      return "kStandAlone";
    case ParallelMode::kDataParallel:
      return "kDataParallel";
    case ParallelMode::kHybridParallel:
      return "kHybridParallel";
    case ParallelMode::kSemiAutoParallel:
      return "kSemiAutoParallel";
    case ParallelMode::kAutoParallel:
      return "kAutoParallel";
  }
  return "no ParallelMode";
}

absl::Status Refused(absl::string_view field, absl::string_view given, absl::string_view accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("SetAutoParallelContext: ", field, " is ", given, "; accepted ", accepted));
}

}  // namespace

absl::Status SetAutoParallelContext(const AutoParallelOptions& options) {
  const ParallelMode mode = options.parallel_mode;
  if (mode != ParallelMode::kStandAlone && mode != ParallelMode::kDataParallel) {
    return Refused("parallel_mode", Name(mode), "are kStandAlone and kDataParallel");
  }
  const DType wire = options.communication_dtype;
  if (wire != DType::kF32 && wire != DType::kF16 && wire != DType::kBF16) {
    const std::string_view name = DTypeName(wire);
    return Refused("communication_dtype", {name.data(), name.size()}, "are f32, f16 and bf16");
  }
  if (options.loss_weight == LossWeight::kElements && !options.gradients_mean) {
    return Refused("loss_weight", "kElements, and gradients_mean is false", "is kRows: a sum has no weights");
  }
  constexpr std::int64_t kMostMib = std::int64_t{1} << 20;
  if (options.bucket_mib < 0 || options.bucket_mib > kMostMib) {
    return Refused("bucket_mib", absl::StrCat(options.bucket_mib), absl::StrCat("are numbers from 0 to ", kMostMib));
  }
  Context() = options;
  return absl::OkStatus();
}

void ResetAutoParallelContext() { Context() = {}; }

const AutoParallelOptions& GetAutoParallelContext() { return Context(); }

}  // namespace mpc
