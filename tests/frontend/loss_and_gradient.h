// The value and the derivative of a loss.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "mpc/mpc.h"

namespace mpc::testing {

using LossFunction = std::function<Tensor(const Tensor& x, const Tensor& labels)>;

/// A step that returns the loss of its Parameter and the gradient of the sum of the loss.
class LossAndGradient : public nn::TrainingStep {
 public:
  MPC_CELL(LossAndGradient, x)
  LossAndGradient(const Tensor& start, LossFunction loss) : x(start.shape(), Constant(0)), loss_(std::move(loss)) {
    EXPECT_TRUE(x.SetData(start).ok());
  }
  std::pair<Tensor, Tensor> Construct(const Tensor& labels) {
    const Tensor loss = loss_(x, labels);
    return {loss, ops::Backward(reduce_sum(loss), {x})[0]};
  }

  Parameter x;

 private:
  LossFunction loss_;
};

}  // namespace mpc::testing
