// The optimizer that the flags ask for.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "mpc/nn.h"
#include "tools/mpc-train/options.h"

namespace mpc::tools {

/// What language models are trained with (Brown et al. 2020, appendix B), beside the flags' defaults.
inline constexpr double kTextBeta2 = 0.95;     ///< beta2 of torch-adamw
inline constexpr double kTextFinalRate = 0.1;  ///< share of the learning rate at the end of a cosine

/// Makes the optimizer that `options.optimizer` names; never null. On text, weight decay acts on matrices and tables
/// alone: biases, gains and offsets keep what they have learnt. On other data it acts on all parameters.
std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainOptions& options, std::vector<Parameter> parameters);

/// Whether the step computes its own learning rate: a cosine over all steps of a training on text, after a warm-up.
/// False for other data and for a constant rate.
bool RateIsInStep(const TrainOptions& options);

/// The global norm that gradients are clipped to; none where they are not clipped.
std::optional<double> ClipNorm(const TrainOptions& options);

}  // namespace mpc::tools
