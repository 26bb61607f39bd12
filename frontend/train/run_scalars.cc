#include "frontend/train/run_scalars.h"

namespace mpc::internal {

std::vector<std::pair<std::string, double>> RunScalars(const RunContext& context) {
  std::vector<std::pair<std::string, double>> scalars = {{"loss", context.loss()},
                                                         {"loss_scale", context.loss_scale},
                                                         {"skipped_steps", static_cast<double>(context.skipped_steps)}};
  if (context.gradient_norm.has_value()) scalars.emplace_back("gradient_norm", *context.gradient_norm);
  if (context.learning_rate.has_value()) scalars.emplace_back("learning_rate", *context.learning_rate);
  scalars.insert(scalars.end(), context.eval_results().begin(), context.eval_results().end());
  return scalars;
}

}  // namespace mpc::internal
