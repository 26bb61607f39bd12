// The short form of a Model's precision and amp::Options as one choice.
#include "absl/strings/str_cat.h"
#include "frontend/train/model_impl.h"

namespace mpc::internal {
namespace {

absl::Status Contradiction(const char* short_name, const std::string& short_value, const char* option,
                           const std::string& value) {
  return absl::InvalidArgumentError(absl::StrCat("Model: ", short_name, " = ", short_value, " and amp.", option, " = ",
                                                 value, " contradict each other; give one of them"));
}

bool Same(const LossScaleConfig& a, const LossScaleConfig& b) {
  return a.mode == b.mode && a.skip == b.skip && a.unscale == b.unscale && a.init == b.init;
}

/// `amp` with what only the short form gives.
absl::StatusOr<amp::Options> Merge(const ModelOptions& given) {
  amp::Options merged = given.amp;
  if (!given.amp_level.empty()) {
    if (!merged.level.empty() && merged.level != given.amp_level) {
      return Contradiction("amp_level", given.amp_level, "level", merged.level);
    }
    merged.level = given.amp_level;
  }
  if (given.keep_batchnorm_fp32.has_value()) {
    const amp::OptionValue keep = *given.keep_batchnorm_fp32;
    if (merged.keep_batchnorm_fp32.given() && merged.keep_batchnorm_fp32.AsBool() != given.keep_batchnorm_fp32) {
      return Contradiction("keep_batchnorm_fp32", keep.text(), "keep_batchnorm_fp32",
                           merged.keep_batchnorm_fp32.text());
    }
    merged.keep_batchnorm_fp32 = keep;
  }
  if (given.amp_dtype.has_value()) {
    const amp::OptionValue dtype = *given.amp_dtype;
    if (merged.dtype.given() && merged.dtype.AsDType() != given.amp_dtype) {
      return Contradiction("amp_dtype", dtype.text(), "dtype", merged.dtype.text());
    }
    merged.dtype = dtype;
  }
  return merged;
}

}  // namespace

absl::StatusOr<amp::Precision> ResolveModelOptions(const ModelOptions& options) {
  absl::StatusOr<amp::Options> merged = Merge(options);
  if (!merged.ok()) return merged.status();
  absl::StatusOr<amp::Precision> precision = amp::ResolveOptions(*merged, amp::Front::kModel);
  if (!precision.ok()) return precision.status();
  if (const std::optional<LossScaleConfig>& manager = options.loss_scale_manager.config();
      manager.has_value() && merged->enabled) {
    if (options.amp.loss_scale.given() && !Same(*manager, precision->loss_scale)) {
      return Contradiction("loss_scale_manager", std::string(manager->mode_name()), "loss_scale",
                           options.amp.loss_scale.text());
    }
    if (absl::Status status = manager->Validate(); !status.ok()) return status;
    precision->loss_scale = *manager;
  }
  if (!options.amp.level.empty() || !options.amp.enabled) {
    amp::Announce(*merged, *precision, amp::Front::kModel);
  }
  return precision;
}

}  // namespace mpc::internal
