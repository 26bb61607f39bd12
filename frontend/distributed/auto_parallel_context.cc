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

/// In kStandAlone nothing follows these options.
absl::Status CheckStandAlone(const AutoParallelOptions& options) {
  const AutoParallelOptions defaults;
  const auto refused = [](absl::string_view field, absl::string_view given, absl::string_view standard) {
    return Refused(field, absl::StrCat(given, ", and parallel_mode is kStandAlone"),
                   absl::StrCat("is ", standard, "; kDataParallel takes others, in one process too"));
  };
  if (options.loss_weight != defaults.loss_weight) return refused("loss_weight", "kElements", "kRows");
  if (options.communication_dtype != defaults.communication_dtype) {
    const std::string_view name = DTypeName(options.communication_dtype);
    return refused("communication_dtype", {name.data(), name.size()}, "f32");
  }
  if (options.reduction != defaults.reduction) return refused("reduction", "kFast", "kOrdered");
  if (options.bucket_mib != defaults.bucket_mib) {
    return refused("bucket_mib", absl::StrCat(options.bucket_mib), absl::StrCat(defaults.bucket_mib));
  }
  return absl::OkStatus();
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
  if (mode == ParallelMode::kStandAlone) {
    if (absl::Status status = CheckStandAlone(options); !status.ok()) return status;
  }
  Context() = options;
  return absl::OkStatus();
}

void ResetAutoParallelContext() { Context() = {}; }

const AutoParallelOptions& GetAutoParallelContext() { return Context(); }

}  // namespace mpc
