// AMP levels and their defaults.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/amp/loss_scale.h"
#include "kernels/dtype.h"

namespace mpc::amp {

/// A validated choice of precision.
struct Precision {
  std::string level = "O0";  ///< O0, O2, O3
  DType dtype = DType::kF16;
  std::optional<bool> keep_batchnorm_fp32;
};

/// Checks a level, its low type and its override. `dtype` empty: f16. Errors name what was given and what is accepted;
/// O1 and auto are "not in this version".
absl::StatusOr<Precision> ParsePrecision(std::string_view level, std::optional<DType> dtype,
                                         std::optional<bool> keep_batchnorm_fp32);

/// The scaler a Model uses where the user chose none: dynamic 2^24 at O2 with f16; scale 1 with check and skip at O2
/// with bf16; none at O0 and O3.
LossScaleConfig DefaultLossScale(const Precision& precision);

/// "dynamic", "none", or a number ("128", "128.0"). Errors: the accepted forms.
absl::StatusOr<LossScaleConfig> ParseLossScale(std::string_view text);

}  // namespace mpc::amp
