// The Model that tests in several processes train, and its batches.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/training/process_group.h"

namespace mpc::testing {

inline const Shape kImage = {2, 6, 6};

/// What sums over micro-steps is not there with one micro-step.
inline Snapshot WithoutAccumulators(Snapshot snapshot) {
  std::erase_if(snapshot, [](const auto& entry) { return entry.first.rfind("accumulator.", 0) == 0; });
  return snapshot;
}

enum class Rule { kMomentum, kLamb };

struct Setting {
  Level level;
  Rule rule = Rule::kMomentum;
  std::int64_t micro_batches = 4;
  std::optional<double> clip_global_norm = 0.5;
};

/// The Model of one process of `processes`, each of which accumulates its part of the micro-batches.
struct Trained {
  Trained(const Setting& setting, int processes)
      : model(network, loss, optimizer(setting.rule),
              {.amp_level = setting.level.level,
               .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 1024, .scale_window = 3}),
               .amp_dtype = setting.level.dtype,
               .accumulation_steps = setting.micro_batches / processes,
               .clip_global_norm = setting.clip_global_norm}) {}

  nn::Optimizer& optimizer(Rule rule) {
    return rule == Rule::kLamb ? static_cast<nn::Optimizer&>(lamb) : static_cast<nn::Optimizer&>(momentum);
  }

  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss;
  nn::Momentum momentum{network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9}};
  nn::Lamb lamb{network.TrainableParams(), {.learning_rate = 0.01}};
  Model model;
};

/// 24 batches. One has an infinity, so that the updates which read it are skipped.
inline data::Dataset Rows() {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 24; ++i) batches.push_back(MakeBatch(kImage, 8, i));
  batches[9] = WithBadValue(batches[9], kInfinity);
  return Batches(std::move(batches));
}

inline const Setting kSetting{{"O2", DType::kF16}};
/// One micro-batch in each of two processes.
inline const Setting kOneEach{{"O2", DType::kF16}, Rule::kMomentum, 2};

}  // namespace mpc::testing
