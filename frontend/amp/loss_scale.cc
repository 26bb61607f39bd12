#include "frontend/amp/loss_scale.h"

#include <cmath>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace mpc {
namespace {

Parameter ScalerField(const std::string& name, Tensor value) {
  Parameter field(value, {.requires_grad = false, .role = "scaler"});
  field.set_name("scaler." + name);
  return field;
}

absl::Status OutOfRange(const char* field, double value, const char* range) {
  return absl::InvalidArgumentError(absl::StrCat("loss scale: ", field, " must be ", range, ", got ", value));
}

}  // namespace

std::string_view LossScaleConfig::mode_name() const {
  switch (mode) {
    case Mode::kNone:
      return "none";
    case Mode::kStatic:
      return "static";
    case Mode::kDynamic:
      return "dynamic";
  }
  return "none";
}

absl::Status LossScaleConfig::Validate() const {
  if (mode == Mode::kNone) return absl::OkStatus();
  if (!(init >= 1) || !(init <= 0x1p126)) return OutOfRange("the scale", init, "a finite number in [1, 2^126]");
  if (mode == Mode::kStatic) return absl::OkStatus();
  if (!(growth > 1) || std::isinf(growth)) return OutOfRange("the growth factor", growth, "finite and > 1");
  if (!(backoff > 0 && backoff < 1)) return OutOfRange("the backoff factor", backoff, "in (0, 1)");
  if (growth_interval < 1) {
    return OutOfRange("the growth interval", static_cast<double>(growth_interval), "at least 1");
  }
  if (backoff_interval < 1) {
    return OutOfRange("the backoff interval", static_cast<double>(backoff_interval), "at least 1");
  }
  if (!(minimum <= maximum)) {
    return absl::InvalidArgumentError(
        absl::StrCat("loss scale: the minimum ", minimum, " must not exceed the maximum ", maximum));
  }
  if (init < minimum || init > maximum) {
    return absl::InvalidArgumentError(
        absl::StrCat("loss scale: the initial scale ", init, " must lie in [", minimum, ", ", maximum, "]"));
  }
  return absl::OkStatus();
}

LossScaler::LossScaler(const LossScaleConfig& config) : config_(config) {
  const auto f32 = [](double value) { return Tensor::Scalar(static_cast<float>(value)); };
  const auto i32 = [](std::int64_t value) { return Tensor::Scalar(static_cast<std::int32_t>(value)); };
  state_ = {ScalerField("scale", f32(config.mode == LossScaleConfig::Mode::kNone ? 1.0 : config.init)),
            ScalerField("good", i32(0)),
            ScalerField("bad", i32(0)),
            ScalerField("skipped", i32(0)),
            ScalerField("consecutive", i32(0)),
            ScalerField("growth", f32(config.growth)),
            ScalerField("backoff", f32(config.backoff)),
            ScalerField("minimum", f32(config.minimum)),
            ScalerField("maximum", f32(config.maximum)),
            ScalerField("interval", i32(config.growth_interval)),
            ScalerField("bad_limit", i32(config.backoff_interval)),
            ScalerField("dynamic", i32(config.mode == LossScaleConfig::Mode::kDynamic)),
            ScalerField("skip", i32(config.skip))};
}

double LossScaler::Field(std::string_view name) const {
  for (const Parameter& field : state_) {
    if (field.name() == name) return field.Value()->Item<double>();
  }
  return 0;
}

LossScaleConfig FixedLossScaleManager::config() const {
  LossScaleConfig config;
  config.mode = LossScaleConfig::Mode::kStatic;
  config.init = options_.loss_scale;
  config.skip = options_.drop_overflow_update;
  config.unscale = options_.drop_overflow_update;
  return config;
}

DynamicLossScaleManager::DynamicLossScaleManager(const DynamicLossScaleOptions& options) : options_(options) {
  if (options.scale_factor > 16 || options.init_loss_scale < 256) {
    std::cerr << absl::StrCat("warning: DynamicLossScaleManager: init_loss_scale = ", options.init_loss_scale,
                              " and scale_factor = ", options.scale_factor,
                              " are unusual (2^24 and 2 are the defaults); were the arguments mixed up?\n");
  }
}

LossScaleConfig DynamicLossScaleManager::config() const {
  LossScaleConfig config;
  config.mode = LossScaleConfig::Mode::kDynamic;
  config.init = options_.init_loss_scale;
  config.growth = options_.scale_factor;
  config.backoff = 1.0 / options_.scale_factor;
  config.growth_interval = options_.scale_window;
  config.minimum = 1.0;
  return config;
}

}  // namespace mpc
