// LeNet-5 (LeCun et al. 1998) as MindSpore's documentation defines it.
#pragma once

#include "mpc/mpc.h"

namespace mpc::models {

/// [N, channels, 32, 32] -> [N, classes].
class LeNet5 : public nn::Cell {
 public:
  MPC_CELL(LeNet5, conv1, conv2, fc1, fc2, fc3)
  explicit LeNet5(int num_classes = 10, int num_channels = 1)
      : conv1(num_channels, 6, 5, {.pad_mode = "valid"}),
        conv2(6, 16, 5, {.pad_mode = "valid"}),
        fc1(16 * 5 * 5, 120, {.weight_init = Normal(0.02)}),
        fc2(120, 84, {.weight_init = Normal(0.02)}),
        fc3(84, num_classes, {.weight_init = Normal(0.02)}) {}

  Tensor Construct(Tensor x) {
    x = max_pool2d(relu(conv1(x)));
    x = max_pool2d(relu(conv2(x)));
    x = flatten(x);
    x = relu(fc1(x));
    x = relu(fc2(x));
    return fc3(x);
  }

 private:
  nn::Conv2d conv1, conv2;
  nn::Dense fc1, fc2, fc3;
};

}  // namespace mpc::models
