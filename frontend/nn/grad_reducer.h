// Gradients of several processes in steps of one's own.
#pragma once

#include <optional>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc::nn {

/// Makes each gradient the mean, or the sum, of those of all processes; MindSpore's DistributedGradReducer. In one
/// process they stay what they are. It is called in a training step's `Construct`, in all processes:
///
///     mpc::nn::DistributedGradReducer reducer;
///     optimizer(reducer(ops::Backward(loss, optimizer.parameters())));
///
/// **What a step does by itself.** In SetAutoParallelContext's kDataParallel a training step exchanges its gradients,
/// in a Model or called directly. It does so before anything in it reads them. It also decides in all processes
/// together whether an update is skipped, gathers running statistics and draws other random numbers in each process.
/// There the reducer exchanges nothing: it finds means, and returns them or makes sums of them.
///
/// **In kStandAlone** a step shares nothing by itself, and the reducer is what exchanges gradients. Then a loss scaler
/// that `Construct` calls (AmpScaler, GradScaler) must check what the reducer returns, so that all processes skip the
/// same updates. A loss that alone is not finite skips the update of its process. A scaler that wraps the step
/// (LossScaleManager) checks before, which is an error by name.
///
/// Sums are added in f32, in a balanced binary tree over ranks; a mean divides before it adds.
class DistributedGradReducer {
 public:
  /// Without `mean` AutoParallelOptions::gradients_mean decides whether gradients become means.
  explicit DistributedGradReducer(std::optional<bool> mean = std::nullopt) : mean_(mean) {}
  /// One gradient each, of its type and shape. Errors: those of ops::AllReduce, and the wrap that is named above.
  std::vector<Tensor> operator()(const std::vector<Tensor>& gradients) const;

 private:
  std::optional<bool> mean_;
};

}  // namespace mpc::nn
