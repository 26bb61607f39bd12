// Residual networks (He et al. 2016) for ImageNet (7x7 stem) and small images (3x3 stem).
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "mpc/mpc.h"

namespace mpc::models {

/// What stands before the residual stages.
enum class ResNetStem {
  kImageNet,  ///< 7x7 convolution of stride 2, 3x3 max pooling of stride 2
  kCifar,     ///< 3x3 convolution of stride 1
};

namespace resnet {

/// A convolution without bias, padded as PyTorch pads, in He's initialisation.
inline nn::Conv2d Conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return {in, out, kernel, {.stride = stride, .pad_mode = "pad", .padding = {kernel / 2}, .weight_init = HeNormal()}};
}

/// What brings x to the shape of a block's result; empty, the identity, where it has that shape.
inline nn::SequentialCell Shortcut(std::int64_t in, std::int64_t out, std::int64_t stride) {
  if (in == out && stride == 1) return nn::SequentialCell(std::vector<nn::AnyCell>());
  return nn::SequentialCell(Conv(in, out, 1, stride), nn::BatchNorm2d(out));
}

}  // namespace resnet

/// relu(x + two 3x3 convolutions). The first one has the stride.
class BasicBlock : public nn::Cell {
 public:
  MPC_CELL(BasicBlock, conv1, bn1, conv2, bn2, downsample)
  /// Result channels for each of the stage's width.
  static constexpr std::int64_t kExpansion = 1;

  BasicBlock(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1(resnet::Conv(in, width, 3, stride)),
        bn1(width),
        conv2(resnet::Conv(width, width, 3)),
        bn2(width),
        downsample(resnet::Shortcut(in, width, stride)) {}

  Tensor Construct(Tensor x) {
    const Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + downsample(x));
  }

 private:
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::SequentialCell downsample;
};

/// relu(x + 1x1, 3x3 and 1x1 convolutions). The 3x3 one has the stride, as in torchvision.
class Bottleneck : public nn::Cell {
 public:
  MPC_CELL(Bottleneck, conv1, bn1, conv2, bn2, conv3, bn3, downsample)
  static constexpr std::int64_t kExpansion = 4;

  Bottleneck(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1(resnet::Conv(in, width, 1)),
        bn1(width),
        conv2(resnet::Conv(width, width, 3, stride)),
        bn2(width),
        conv3(resnet::Conv(width, kExpansion * width, 1)),
        bn3(kExpansion * width),
        downsample(resnet::Shortcut(in, kExpansion * width, stride)) {}

  Tensor Construct(Tensor x) {
    Tensor y = relu(bn1(conv1(x)));
    y = relu(bn2(conv2(y)));
    return relu(bn3(conv3(y)) + downsample(x));
  }

 private:
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  nn::SequentialCell downsample;
};

struct ResNetOptions {
  int num_classes = 1000;
  int num_channels = 3;
  ResNetStem stem = ResNetStem::kImageNet;
  std::int64_t width = 64;  ///< channels of the first stage; each further one doubles them
};

/// [N, channels, H, W] -> [N, classes]: four stages of `blocks` Blocks, the mean over positions, a dense layer.
template <typename Block>
class ResNet : public nn::Cell {
 public:
  MPC_CELL(ResNet, conv1, bn1, layer1, layer2, layer3, layer4, fc)

  ResNet(const std::array<int, 4>& blocks, const ResNetOptions& options)
      : stem_(options.stem),
        conv1(stem_ == ResNetStem::kImageNet ? resnet::Conv(options.num_channels, options.width, 7, 2)
                                             : resnet::Conv(options.num_channels, options.width, 3)),
        bn1(options.width),
        layer1(Stage(blocks[0], options.width, options.width, 1)),
        layer2(Stage(blocks[1], Block::kExpansion * options.width, 2 * options.width, 2)),
        layer3(Stage(blocks[2], Block::kExpansion * 2 * options.width, 4 * options.width, 2)),
        layer4(Stage(blocks[3], Block::kExpansion * 4 * options.width, 8 * options.width, 2)),
        fc(Block::kExpansion * 8 * options.width, options.num_classes) {}

  Tensor Construct(Tensor x) {
    x = relu(bn1(conv1(x)));
    if (stem_ == ResNetStem::kImageNet) {
      x = max_pool2d(x, {.kernel_size = {3, 3}, .stride = {2, 2}, .pad_mode = "pad", .padding = {1, 1, 1, 1}});
    }
    x = layer4(layer3(layer2(layer1(x))));
    return fc(reduce_mean(x, {2, 3}));
  }

 private:
  static nn::SequentialCell Stage(int blocks, std::int64_t in, std::int64_t width, std::int64_t stride) {
    std::vector<nn::AnyCell> cells;
    for (int block = 0; block < blocks; ++block) {
      cells.emplace_back(block == 0 ? Block(in, width, stride) : Block(Block::kExpansion * width, width, 1));
    }
    return nn::SequentialCell(std::move(cells));
  }

  ResNetStem stem_;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::SequentialCell layer1, layer2, layer3, layer4;
  nn::Dense fc;
};

/// 11,689,512 parameters with the defaults.
class ResNet18 : public ResNet<BasicBlock> {
 public:
  MPC_CELL(ResNet18)
  explicit ResNet18(const ResNetOptions& options = {}) : ResNet({2, 2, 2, 2}, options) {}
  Tensor Construct(Tensor x) { return ResNet::Construct(x); }
};

/// 25,557,032 parameters with the defaults.
class ResNet50 : public ResNet<Bottleneck> {
 public:
  MPC_CELL(ResNet50)
  explicit ResNet50(const ResNetOptions& options = {}) : ResNet({3, 4, 6, 3}, options) {}
  Tensor Construct(Tensor x) { return ResNet::Construct(x); }
};

}  // namespace mpc::models
