// Loss Cells: f32 at every AMP level.
#pragma once

#include <string>

#include "frontend/graph/cell.h"
#include "frontend/graph/ops.h"

namespace mpc::nn {

/// Base of losses: (logits, labels) -> loss.
class LossBase : public Cell {
 public:
  bool is_loss() const override { return true; }
};

struct SoftmaxCrossEntropyOptions {
  bool sparse = false;             ///< labels are class indices [N] instead of floating one-hot rows [N, C]
  std::string reduction = "none";  ///< none, mean, sum
};

/// Cross-entropy of softmax(logits) against labels. The defaults are MindSpore's.
class SoftmaxCrossEntropyWithLogits : public LossBase {
 public:
  MPC_CELL(SoftmaxCrossEntropyWithLogits)
  explicit SoftmaxCrossEntropyWithLogits(const SoftmaxCrossEntropyOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& logits, const Tensor& labels);

 private:
  SoftmaxCrossEntropyOptions options_;
};

struct MSELossOptions {
  std::string reduction = "mean";  ///< none, mean, sum
};

/// (prediction - target)^2.
class MSELoss : public LossBase {
 public:
  MPC_CELL(MSELoss)
  explicit MSELoss(const MSELossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& prediction, const Tensor& target) {
    return mse(prediction, target, options_.reduction);
  }

 private:
  MSELossOptions options_;
};

struct BCEWithLogitsLossOptions {
  std::string reduction = "mean";  ///< none, mean, sum
};

/// Binary cross-entropy of sigmoid(logits) against labels of the same shape in [0, 1].
class BCEWithLogitsLoss : public LossBase {
 public:
  MPC_CELL(BCEWithLogitsLoss)
  explicit BCEWithLogitsLoss(const BCEWithLogitsLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& logits, const Tensor& labels) {
    return binary_cross_entropy_with_logits(logits, labels, options_.reduction);
  }

 private:
  BCEWithLogitsLossOptions options_;
};

}  // namespace mpc::nn
