// A network whose float16 gradients vanish without loss scaling.
#pragma once

#include "models/mlp.h"
#include "mpc/mpc.h"

namespace mpc::models {

/// Cross-entropy of class indices as a small term of a sum of losses: times 1e-7. In f32 it trains like any other, at a
/// learning rate 1e7 times as large. Its cotangents are about 1e-9 for an element of the logits. Half of the smallest
/// float16 is 3e-8, so that without a loss scale every gradient of a low layer is zero.
class FaintLoss : public nn::Cell {
 public:
  MPC_CELL(FaintLoss)
  static constexpr double kWeight = 1e-7;
  bool is_loss() const override { return true; }
  Tensor Construct(Tensor logits, Tensor labels) { return softmax_cross_entropy(logits, labels, "mean") * kWeight; }
};

/// Mlp under FaintLoss.
using FaintNet = Mlp;

}  // namespace mpc::models
