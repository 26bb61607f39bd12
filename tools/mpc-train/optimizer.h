// The optimizer that the flags ask for.
#pragma once

#include <memory>
#include <vector>

#include "frontend/nn/optimizers.h"
#include "tools/mpc-train/options.h"

namespace mpc::tools {

std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainOptions& options, std::vector<Parameter> parameters);

}  // namespace mpc::tools
