#include "frontend/graph/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

#include "absl/strings/str_cat.h"

namespace mpc {
namespace {

std::size_t IndexOf(ScalerField field) { return static_cast<std::size_t>(field); }

std::vector<ScalerField> AllFields() {
  std::vector<ScalerField> fields;
  for (std::size_t i = 0; i < kScalerFieldNames.size(); ++i) fields.push_back(static_cast<ScalerField>(i));
  return fields;
}

/// The value that a field starts from.
Tensor FieldValue(const LossScaleConfig& config, ScalerField field) {
  const auto f32 = [](double value) { return Tensor::Scalar(static_cast<float>(value)); };
  const auto i32 = [](std::int64_t value) { return Tensor::Scalar(static_cast<std::int32_t>(value)); };
  switch (field) {
    case ScalerField::kScale:
      return f32(config.mode == LossScaleConfig::Mode::kNone ? 1.0 : config.init);
    case ScalerField::kGrowth:
      return f32(config.growth);
    case ScalerField::kBackoff:
      return f32(config.backoff);
    case ScalerField::kMinimum:
      return f32(config.minimum);
    case ScalerField::kMaximum:
      return f32(config.maximum);
    case ScalerField::kInterval:
      return i32(config.growth_interval);
    case ScalerField::kBadLimit:
      return i32(config.backoff_interval);
    case ScalerField::kDynamic:
      return i32(config.mode == LossScaleConfig::Mode::kDynamic);
    case ScalerField::kSkip:
      return i32(config.skip);
    case ScalerField::kGood:
    case ScalerField::kBad:
    case ScalerField::kSkipped:
    case ScalerField::kConsecutive:
      return i32(0);
  }
  return i32(0);
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
  const std::int64_t longest = std::max(growth_interval, backoff_interval);
  if (longest > std::numeric_limits<std::int32_t>::max()) {
    return OutOfRange("an interval", static_cast<double>(longest), "below 2^31");
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

LossScaler::LossScaler(const LossScaleConfig& config) : config_(config), made_with_(config) {
  for (ScalerField field : AllFields()) {
    state_.emplace_back(FieldValue(config, field), ParameterOptions{.requires_grad = false, .role = Role::kScaler});
  }
  SetPrefix("scaler");
}

void LossScaler::SetPrefix(const std::string& prefix) {
  for (ScalerField field : AllFields()) state_[IndexOf(field)].set_name(ScalerEntryName(prefix, field));
}

double LossScaler::Field(ScalerField field) const {
  const absl::StatusOr<Tensor> value = state_[IndexOf(field)].Value();
  return value.ok() ? value->Item<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::int64_t LossScaler::Count(ScalerField field) const {
  const double count = Field(field);
  return std::isnan(count) ? -1 : static_cast<std::int64_t>(count);
}

LossScaleConfig LossScaler::current() const {
  LossScaleConfig config = config_;
  config.growth = Field(ScalerField::kGrowth);
  config.backoff = Field(ScalerField::kBackoff);
  config.minimum = Field(ScalerField::kMinimum);
  config.maximum = Field(ScalerField::kMaximum);
  config.growth_interval = static_cast<std::int64_t>(Field(ScalerField::kInterval));
  config.backoff_interval = static_cast<std::int64_t>(Field(ScalerField::kBadLimit));
  if (config.mode != LossScaleConfig::Mode::kNone) {
    config.mode = Field(ScalerField::kDynamic) != 0 ? LossScaleConfig::Mode::kDynamic : LossScaleConfig::Mode::kStatic;
  }
  return config;
}

absl::Status LossScaler::Configure(const LossScaleConfig& config) {
  if (absl::Status status = config.Validate(); !status.ok()) return status;
  for (ScalerField field : AllFields()) {
    if (!IsScalerSetting(field)) continue;
    if (absl::Status status = state_[IndexOf(field)].SetData(FieldValue(config, field)); !status.ok()) return status;
  }
  config_.init = config.init;
  return absl::OkStatus();
}

absl::Status LossScaler::CheckScale(double scale) {
  if (scale >= 0x1p-126 && scale <= 0x1p126) return absl::OkStatus();
  return OutOfRange("the scale", scale, "in [2^-126, 2^126]");
}

absl::Status LossScaler::SetScale(double scale) {
  if (absl::Status status = CheckScale(scale); !status.ok()) return status;
  return state_[IndexOf(ScalerField::kScale)].SetData(Tensor::Scalar(static_cast<float>(scale)));
}

bool LossScaler::IsCount(double value) { return value >= 0 && value < 0x1p31 && std::floor(value) == value; }

absl::Status LossScaler::SetCounters(std::int64_t good, std::int64_t bad) {
  for (std::int64_t count : {good, bad}) {
    if (count < 0 || count > std::numeric_limits<std::int32_t>::max()) {
      return OutOfRange("a counter", static_cast<double>(count), "in [0, 2^31)");
    }
  }
  const auto set = [this](ScalerField field, std::int64_t count) {
    return state_[IndexOf(field)].SetData(Tensor::Scalar(static_cast<std::int32_t>(count)));
  };
  absl::Status status = set(ScalerField::kGood, good);
  return status.ok() ? set(ScalerField::kBad, bad) : status;
}

LossScaleConfig FixedLossScaleManager::config() const {
  LossScaleConfig config;
  config.mode = LossScaleConfig::Mode::kStatic;
  config.init = options_.loss_scale;
  config.skip = options_.drop_overflow_update;
  // Any optimizer divides by 1.
  config.unscale = options_.drop_overflow_update || options_.loss_scale == 1;
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
