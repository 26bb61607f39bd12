#include "frontend/amp/grad_scaler.h"

namespace mpc::amp {
namespace {

LossScaleConfig ConfigOf(const GradScalerOptions& options) {
  LossScaleConfig config;
  config.mode = LossScaleConfig::Mode::kDynamic;
  config.init = options.init_scale;
  config.growth = options.growth_factor;
  config.backoff = options.backoff_factor;
  config.minimum = 0x1p-126;
  config.growth_interval = options.growth_interval;
  return config;
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : ExplicitScaler("GradScaler", options.enabled, ConfigOf(options)) {}

absl::Status GradScaler::SetScale(double scale) {
  return Change([](LossScaleConfig&) {}, scale);
}

absl::Status GradScaler::SetGrowthFactor(double growth_factor) {
  return Change([&](LossScaleConfig& config) { config.growth = growth_factor; });
}

absl::Status GradScaler::SetBackoffFactor(double backoff_factor) {
  return Change([&](LossScaleConfig& config) { config.backoff = backoff_factor; });
}

absl::Status GradScaler::SetGrowthInterval(std::int64_t growth_interval) {
  return Change([&](LossScaleConfig& config) { config.growth_interval = growth_interval; });
}

ScalerState GradScaler::StateDict() const {
  if (!enabled()) return {};
  const LossScaleConfig config = scaler().current();
  return {{"scale", scaler().scale()},
          {"growth_factor", config.growth},
          {"backoff_factor", config.backoff},
          {"growth_interval", static_cast<double>(config.growth_interval)},
          {"_growth_tracker", static_cast<double>(scaler().good_steps())}};
}

absl::Status GradScaler::LoadStateDict(const ScalerState& state) {
  if (!enabled()) return absl::OkStatus();
  if (absl::Status status =
          CheckKeys(state, {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"});
      !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckCounts(state, {"growth_interval", "_growth_tracker"}); !status.ok()) return status;
  const auto change = [&](LossScaleConfig& config) {
    config.growth = state.at("growth_factor");
    config.backoff = state.at("backoff_factor");
    config.growth_interval = static_cast<std::int64_t>(state.at("growth_interval"));
  };
  return Change(change, state.at("scale"), Counters{static_cast<std::int64_t>(state.at("_growth_tracker")), 0});
}

}  // namespace mpc::amp
