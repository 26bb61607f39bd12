// The optimizer that the flags ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "mpc/nn.h"
#include "tools/mpc-train/options.h"

namespace mpc::tools {

/// What language models are trained with (Brown et al. 2020, appendix B), beside the flags' defaults.
inline constexpr double kTextBeta2 = 0.95;     ///< beta2 of torch-adamw
inline constexpr double kTextFinalRate = 0.1;  ///< share of the learning rate at the end of a schedule

/// Makes the optimizer that `options.optimizer` names; never null. A schedule that is part of the step falls over
/// `total_steps`, warm-up included. On text, weight decay acts on matrices and tables alone: biases, gains and offsets
/// keep what they have learnt. On other data it acts on all parameters.
std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainOptions& options, std::vector<Parameter> parameters,
                                             std::int64_t total_steps);

/// Whether the step computes its own learning rate. False for a constant rate, and for a cosine without a warm-up of
/// data that are no text, which changes between epochs.
bool RateIsInStep(const TrainOptions& options);

/// The rate after the last step where the step computes it, else the one at the start.
double FinalRate(const TrainOptions& options);

/// The size that elements of gradients are cut off at; none where they are not clipped.
std::optional<double> ClipValue(const TrainOptions& options);

/// The global norm that gradients are clipped to; none where they are not clipped.
std::optional<double> ClipNorm(const TrainOptions& options);

/// Errors: a number that becomes infinity in f32, the type of updates. A limit that becomes 0, which stands for none.
absl::Status CheckNumbersOfUpdates(const TrainOptions& options);

}  // namespace mpc::tools
