// A multi-layer perceptron on flattened images.
#pragma once

#include "mpc/mpc.h"

namespace mpc::models {

/// [N, ...] with `inputs` elements a sample -> [N, classes], two hidden layers.
class Mlp : public nn::Cell {
 public:
  MPC_CELL(Mlp, fc1, fc2, fc3)
  explicit Mlp(int num_classes = 10, int inputs = 32 * 32, int hidden = 256)
      : fc1(inputs, hidden), fc2(hidden, hidden), fc3(hidden, num_classes) {}

  Tensor Construct(Tensor x) {
    x = flatten(x);
    x = relu(fc1(x));
    x = relu(fc2(x));
    return fc3(x);
  }

 private:
  nn::Dense fc1, fc2, fc3;
};

}  // namespace mpc::models
