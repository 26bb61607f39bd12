// Vision transformers (Dosovitskiy et al. 2021), as timm's VisionTransformer: normalisation before each part.
#pragma once

#include <cstdint>

#include "models/transformer.h"
#include "mpc/mpc.h"

namespace mpc::models {

/// The defaults are ViT-Base on patches of 16 x 16 pixels, timm's "vit_base_patch16_224": 86,567,656 parameters.
struct VitConfig {
  std::int64_t image_size = 224;  ///< pixels of a side; a multiple of the patch's
  std::int64_t patch_size = 16;   ///< pixels of a patch's side
  std::int64_t channels = 3;
  std::int64_t classes = 1000;
  std::int64_t width = 768;  ///< 4 width features lie between the two layers of a block
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  double dropout = 0.0;  ///< rate for embeddings and for what each part adds; published with 0

  /// timm's "vit_tiny_patch16_224": 5,717,416 parameters.
  static VitConfig Tiny() { return {.width = 192, .layers = 12, .heads = 3}; }
  /// timm's "vit_small_patch16_224": 22,050,664 parameters.
  static VitConfig Small() { return {.width = 384, .layers = 12, .heads = 6}; }
  static VitConfig Base() { return {}; }
  /// timm's "vit_large_patch16_224": 304,326,632 parameters.
  static VitConfig Large() { return {.width = 1024, .layers = 24, .heads = 16}; }
};

/// x + attention(norm(x)), then x + mlp(norm(x)), on [N, T, width].
class VitBlock : public TransformerBlock {
 public:
  MPC_CELL(VitBlock)

  explicit VitBlock(const VitConfig& config)
      : TransformerBlock({.width = config.width, .heads = config.heads, .dropout = config.dropout, .epsilon = 1e-6}) {}

  Tensor Construct(Tensor x) {
    x = x + Attended(ln1(x));
    return x + FedForward(ln2(x));
  }
};

/// Images [N, channels, image_size, image_size] -> logits [N, classes]. A convolution turns patches into rows, and a
/// trained row, the class token, stands in front of them. The head reads what the blocks made of the class token.
class Vit : public nn::Cell {
 public:
  MPC_CELL(Vit, patches, class_token, positions, drop, blocks, ln_f, head)

  explicit Vit(const VitConfig& config = {})
      : patches(config.channels, config.width, config.patch_size,
                {.stride = config.patch_size, .pad_mode = "valid", .has_bias = true}),
        class_token({1, 1, config.width}, Normal(1e-6)),
        positions({1, Positions(config), config.width}, TruncatedNormal(0.02)),
        drop({.p = config.dropout}),
        blocks(StackOf<VitBlock>(config)),
        ln_f({config.width}, {.epsilon = 1e-6}),
        head(config.width, config.classes, {.weight_init = TruncatedNormal(0.02), .bias_init = Zeros()}),
        config_(config) {}

  Tensor Construct(const Tensor& images) {
    const std::int64_t samples = images.dim(0);
    const std::int64_t width = config_.width;
    const Tensor rows = transpose(reshape(patches(images), {samples, width, -1}), {0, 2, 1});
    Tensor x = concat({broadcast_to(class_token, {samples, 1, width}), rows}, 1) + positions;
    if (config_.dropout > 0) x = drop(x);
    const Tensor first = slice(blocks(x), {0, 0, 0}, {samples, 1, width});
    return head(ln_f(reshape(first, {samples, width})));
  }

 private:
  /// Those of the patches, and that of the class token.
  static std::int64_t Positions(const VitConfig& config) {
    const std::int64_t side = config.image_size / config.patch_size;
    return side * side + 1;
  }

  nn::Conv2d patches;
  Parameter class_token;
  Parameter positions;
  nn::Dropout drop;
  nn::SequentialCell blocks;
  nn::LayerNorm ln_f;
  nn::Dense head;
  VitConfig config_;
};

}  // namespace mpc::models
