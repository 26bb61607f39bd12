// A small convolutional network with batch normalisation.
#pragma once

#include "mpc/mpc.h"

namespace mpc::models {

/// [N, channels, 32, 32] -> [N, classes]: two convolution + batch norm + relu + pool stages, a third with average
/// pooling.
class BnNet : public nn::Cell {
 public:
  MPC_CELL(BnNet, conv1, bn1, conv2, bn2, conv3, bn3, fc)
  explicit BnNet(int num_classes = 10, int num_channels = 1)
      : conv1(num_channels, 16, 3),
        bn1(16),
        conv2(16, 32, 3),
        bn2(32),
        conv3(32, 32, 3),
        bn3(32),
        fc(32 * 4 * 4, num_classes) {}

  Tensor Construct(Tensor x) {
    x = max_pool2d(relu(bn1(conv1(x))));
    x = max_pool2d(relu(bn2(conv2(x))));
    x = avg_pool2d(relu(bn3(conv3(x))));
    return fc(flatten(x));
  }

 private:
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  nn::Dense fc;
};

}  // namespace mpc::models
