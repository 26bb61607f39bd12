#include "frontend/amp/level.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mpc::amp {

absl::StatusOr<Precision> ParsePrecision(std::string_view level, std::optional<DType> dtype,
                                         std::optional<bool> keep_batchnorm_fp32) {
  const std::string given(level);
  if (level == "O1" || level == "auto") {
    return absl::UnimplementedError(
        absl::StrCat("amp_level '", given, "' is not in this version; choose O0, O2 or O3"));
  }
  if (level != "O0" && level != "O2" && level != "O3") {
    const bool zero = level.size() == 2 && level[0] == '0';
    return absl::InvalidArgumentError(absl::StrCat("unknown amp_level '", given, "'; choose O0, O2 or O3",
                                                   zero ? " (the letter O, not the digit zero)" : ""));
  }
  if (dtype.has_value() && !IsLowPrecision(*dtype) && !(level == "O0" && *dtype == DType::kF32)) {
    return absl::InvalidArgumentError(
        absl::StrCat("amp dtype must be f16 or bf16, got ", std::string(DTypeName(*dtype))));
  }
  if (level == "O0" && dtype.has_value() && IsLowPrecision(*dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("amp_level O0 is full f32 and takes no dtype ",
                                                   std::string(DTypeName(*dtype)), "; choose O2 or O3"));
  }
  Precision precision;
  precision.level = given;
  if (dtype.has_value() && IsLowPrecision(*dtype)) precision.dtype = *dtype;
  precision.keep_batchnorm_fp32 = keep_batchnorm_fp32;
  return precision;
}

LossScaleConfig DefaultLossScale(const Precision& precision) {
  LossScaleConfig config;
  if (precision.level != "O2") return config;
  if (precision.dtype == DType::kBF16) {
    config.mode = LossScaleConfig::Mode::kStatic;
    return config;
  }
  return DynamicLossScaleManager().config();
}

absl::StatusOr<LossScaleConfig> ParseLossScale(std::string_view text) {
  LossScaleConfig config;
  if (text == "none") return config;
  if (text == "dynamic") return DynamicLossScaleManager().config();
  double scale = 0;
  if (!absl::SimpleAtod(absl::string_view(text.data(), text.size()), &scale) || !(scale >= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("loss scale '", std::string(text), "' is not \"dynamic\", \"none\" or a number >= 1"));
  }
  config = FixedLossScaleManager({.loss_scale = scale}).config();
  absl::Status status = config.Validate();
  if (!status.ok()) return status;
  return config;
}

}  // namespace mpc::amp
