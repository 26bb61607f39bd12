// Layers of sequence and generator networks. Names and defaults are MindSpore's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/graph/cell.h"
#include "frontend/graph/initializer.h"
#include "frontend/graph/sequence_ops.h"
#include "frontend/nn/layers.h"

namespace mpc::nn {

struct LayerNormOptions {
  Initializer gamma_init = Ones();
  Initializer beta_init = Zeros();
  double epsilon = 1e-7;  ///< MindSpore's; PyTorch's is 1e-5
};

/// Normalises over the trailing axes `normalized_shape`. gamma and beta have that shape.
class LayerNorm : public Cell {
 public:
  MPC_CELL(LayerNorm, gamma, beta)
  explicit LayerNorm(Shape normalized_shape, const LayerNormOptions& options = {});
  Tensor Construct(const Tensor& x);
  Parameter gamma;
  Parameter beta;

 private:
  Shape normalized_shape_;
  double epsilon_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;  ///< gamma and beta are trained
  Initializer gamma_init = Ones();
  Initializer beta_init = Zeros();
};

/// Normalises groups of num_channels / num_groups channels of each sample of [N, C, H, W]. gamma and beta are [C].
class GroupNorm : public Cell {
 public:
  MPC_CELL(GroupNorm, gamma, beta)
  GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options = {});
  Tensor Construct(const Tensor& x);
  Parameter gamma;
  Parameter beta;

 private:
  std::int64_t num_groups_;
  std::int64_t num_channels_;
  double eps_;
};

struct Conv2dTransposeOptions {
  Size2d stride = 1;
  std::string pad_mode = "same";            ///< same, valid, pad
  std::vector<std::int64_t> padding = {0};  ///< for "pad": one value, or top, bottom, left, right
  Size2d output_padding = 0;                ///< for "pad" and "valid", smaller than the stride
  Size2d dilation = 1;
  std::int64_t group = 1;
  bool has_bias = false;
  std::optional<Initializer> weight_init;  ///< HeUniform(sqrt(5))
  std::optional<Initializer> bias_init;    ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in)), fan_in = (out / group) * kh * kw
};

/// Transposed convolution: [N, in, H, W] -> [N, out, H', W'], H' = H * stride with "same". weight [in, out / group, kh,
/// kw], bias [out].
class Conv2dTranspose : public Cell {
 public:
  MPC_CELL(Conv2dTranspose, weight, bias)
  Conv2dTranspose(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size,
                  const Conv2dTransposeOptions& options = {});
  Tensor Construct(const Tensor& x);
  Parameter weight;
  Parameter bias;

 private:
  std::int64_t in_channels_;
  ConvTranspose2dOpOptions options_;
};

struct MultiHeadAttentionOptions {
  bool has_bias = true;
  bool causal = false;                     ///< position t reads positions up to t only
  std::optional<Initializer> weight_init;  ///< weight of in_proj; left out: XavierUniform()
  std::optional<Initializer> output_init;  ///< weight of out_proj; left out: weight_init
};

/// Self-attention: [N, T, embed_dim] -> [N, T, embed_dim]. `in_proj` [3 embed_dim, embed_dim] makes queries, keys and
/// values, in that order; a head has embed_dim / num_heads neighbouring features of each. Biases start at zero.
class MultiHeadAttention : public Cell {
 public:
  MPC_CELL(MultiHeadAttention, in_proj, out_proj)
  MultiHeadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiHeadAttentionOptions& options = {});
  Tensor Construct(const Tensor& x);
  Dense in_proj;
  Dense out_proj;

 private:
  std::int64_t embed_dim_;
  std::int64_t num_heads_;
  bool causal_;
};

struct LSTMCellOptions {
  bool has_bias = true;
};

/// One step of a long short-term memory: x [N, input_size], h and c [N, hidden_size] -> (h', c'). Parameters are
/// weight_ih [4 H, I], weight_hh [4 H, H], bias_ih [4 H] and bias_hh [4 H]. Their gates stand in the order input,
/// forget, cell, output. All are drawn from U(-1/sqrt(H), 1/sqrt(H)).
class LSTMCell : public Cell {
 public:
  MPC_CELL(LSTMCell, weight_ih, weight_hh, bias_ih, bias_hh)
  LSTMCell(std::int64_t input_size, std::int64_t hidden_size, const LSTMCellOptions& options = {});
  std::pair<Tensor, Tensor> Construct(const Tensor& x, const Tensor& h, const Tensor& c);
  Parameter weight_ih;
  Parameter weight_hh;
  Parameter bias_ih;
  Parameter bias_hh;

 private:
  std::int64_t input_size_;
  std::int64_t hidden_size_;
};

}  // namespace mpc::nn
