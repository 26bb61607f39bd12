#include "frontend/amp/amp_scaler.h"

#include "absl/strings/str_cat.h"

namespace mpc::amp {
namespace {

LossScaleConfig ConfigOf(const AmpScalerOptions& options) {
  LossScaleConfig config;
  config.mode = options.use_dynamic_loss_scaling ? LossScaleConfig::Mode::kDynamic : LossScaleConfig::Mode::kStatic;
  config.init = options.init_loss_scaling;
  config.growth = options.incr_ratio;
  config.backoff = options.decr_ratio;
  config.minimum = 0x1p-126;
  config.growth_interval = options.incr_every_n_steps;
  config.backoff_interval = options.decr_every_n_nan_or_inf;
  return config;
}

}  // namespace

AmpScaler::AmpScaler(const AmpScalerOptions& options)
    : ExplicitScaler("AmpScaler", options.enable, ConfigOf(options)) {}

bool AmpScaler::Minimize(nn::Optimizer& optimizer, const std::vector<Tensor>& gradients) {
  return StepAndUpdate(optimizer, gradients);
}

bool AmpScaler::Minimize(nn::Optimizer& optimizer, const Tensor& scaled_loss) {
  return StepAndUpdate(optimizer, GradientsOf(optimizer, scaled_loss));
}

bool AmpScaler::IsUseDynamicLossScaling() const { return scaler().current().mode == LossScaleConfig::Mode::kDynamic; }
double AmpScaler::GetInitLossScaling() const { return scaler().config().init; }
double AmpScaler::GetIncrRatio() const { return scaler().current().growth; }
double AmpScaler::GetDecrRatio() const { return scaler().current().backoff; }
std::int64_t AmpScaler::GetIncrEveryNSteps() const { return scaler().current().growth_interval; }
std::int64_t AmpScaler::GetDecrEveryNNanOrInf() const { return scaler().current().backoff_interval; }

absl::Status AmpScaler::SetInitLossScaling(double init_loss_scaling) {
  return Change([&](LossScaleConfig& config) { config.init = init_loss_scaling; }, init_loss_scaling);
}

absl::Status AmpScaler::SetIncrRatio(double incr_ratio) {
  return Change([&](LossScaleConfig& config) { config.growth = incr_ratio; });
}

absl::Status AmpScaler::SetDecrRatio(double decr_ratio) {
  return Change([&](LossScaleConfig& config) { config.backoff = decr_ratio; });
}

absl::Status AmpScaler::SetIncrEveryNSteps(std::int64_t incr_every_n_steps) {
  return Change([&](LossScaleConfig& config) { config.growth_interval = incr_every_n_steps; });
}

absl::Status AmpScaler::SetDecrEveryNNanOrInf(std::int64_t decr_every_n_nan_or_inf) {
  return Change([&](LossScaleConfig& config) { config.backoff_interval = decr_every_n_nan_or_inf; });
}

ScalerState AmpScaler::StateDict() const {
  if (!enabled()) return {};
  const LossScaleConfig config = scaler().current();
  return {{"scale", scaler().scale()},
          {"incr_ratio", config.growth},
          {"decr_ratio", config.backoff},
          {"incr_every_n_steps", static_cast<double>(config.growth_interval)},
          {"decr_every_n_nan_or_inf", static_cast<double>(config.backoff_interval)},
          {"incr_count", static_cast<double>(scaler().good_steps())},
          {"decr_count", static_cast<double>(scaler().bad_steps())},
          {"use_dynamic_loss_scaling", config.mode == LossScaleConfig::Mode::kDynamic ? 1.0 : 0.0}};
}

absl::Status AmpScaler::LoadStateDict(const ScalerState& state) {
  if (!enabled()) return absl::OkStatus();
  if (absl::Status status =
          CheckKeys(state, {"scale", "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf",
                            "incr_count", "decr_count", "use_dynamic_loss_scaling"});
      !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckCounts(state, {"incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_count",
                                                "decr_count", "use_dynamic_loss_scaling"});
      !status.ok()) {
    return status;
  }
  const auto count = [&](const char* key) { return static_cast<std::int64_t>(state.at(key)); };
  const auto change = [&](LossScaleConfig& config) {
    config.growth = state.at("incr_ratio");
    config.backoff = state.at("decr_ratio");
    config.growth_interval = count("incr_every_n_steps");
    config.backoff_interval = count("decr_every_n_nan_or_inf");
    config.mode =
        count("use_dynamic_loss_scaling") != 0 ? LossScaleConfig::Mode::kDynamic : LossScaleConfig::Mode::kStatic;
  };
  return Change(change, state.at("scale"), Counters{count("incr_count"), count("decr_count")});
}

}  // namespace mpc::amp
