// Gradients of several processes in steps of one's own.
#pragma once

#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc::nn {

/// Makes each gradient the mean, or the sum, of those of all processes; MindSpore's DistributedGradReducer. In one
/// process they stay what they are. It is called in a training step's `Construct`, in all processes:
///
///     mpc::nn::DistributedGradReducer reducer;
///     optimizer(reducer(ops::Backward(loss, optimizer.parameters())));
///
/// **What a step does by itself.** Where SetAutoParallelContext asks for kDataParallel, every training step that a
/// Model trains or that is called directly averages all its gradients, before anything in it reads them. It also
/// decides in all processes together whether an update is skipped, gathers running statistics and draws other random
/// numbers in each process. The reducer finds means there: it returns them, or makes sums of them. Nothing is exchanged
/// twice.
///
/// **In kStandAlone** a step shares nothing by itself, and the reducer is what exchanges gradients. Then a loss scaler
/// that `Construct` calls (AmpScaler, GradScaler) must check what the reducer returns, so that all processes skip the
/// same updates. A scaler that wraps the step (LossScaleManager) checks before, which is an error by name.
///
/// Sums are added in f32, in a balanced binary tree over ranks; a mean divides before it adds.
class DistributedGradReducer {
 public:
  /// `mean` is MindSpore's argument and AutoParallelOptions::gradients_mean.
  explicit DistributedGradReducer(bool mean = true) : mean_(mean) {}
  /// One gradient each, of its type and shape. Errors: those of ops::AllReduce, and the wrap that is named above.
  std::vector<Tensor> operator()(const std::vector<Tensor>& gradients) const;

 private:
  Tensor Reduced(const Tensor& gradient) const;

  bool mean_;
};

}  // namespace mpc::nn
