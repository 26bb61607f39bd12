// Layers of sequence and generator networks. Names and defaults are MindSpore's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
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

/// Normalises groups of num_channels / num_groups channels of each sample of [N, C, H, W] or [N, C, L]. gamma and beta
/// are [C].
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
/// kw], bias [out]. Errors: a group that does not divide both numbers of channels, and those of conv_transpose2d.
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
  std::int64_t out_channels_;
  ConvTranspose2dOpOptions options_;
};

struct MultiHeadAttentionOptions {
  bool has_bias = true;
  bool causal = false;                     ///< query t of T reads keys s <= t + S - T of S only
  double dropout = 0;                      ///< probability that a weight of attention is zero while training
  std::optional<std::int64_t> kdim;        ///< width of keys; left out: embed_dim
  std::optional<std::int64_t> vdim;        ///< width of values; left out: embed_dim
  std::optional<Initializer> weight_init;  ///< weights of queries, keys and values; left out: XavierUniform()
  std::optional<Initializer> output_init;  ///< weight of out_proj; left out: weight_init
};

/// What attention reads less of. A mask of i1 is true where a position is left out, as in MindSpore. A floating one is
/// added to the scores, before softmax; a row of minus infinity gives NaN, as in PyTorch. What a mask of i1 or `causal`
/// leaves out is below every finite score, also below -1e9. Undefined masks do nothing.
struct AttentionMasks {
  Tensor key_padding_mask;  ///< [N, S]: positions of each sample's keys
  Tensor attn_mask;         ///< [T, S], or [N * num_heads, T, S]: positions of the keys for each query
};

namespace internal {
/// `mask`, or one of rank 0, which does nothing, where it is undefined.
Tensor MaskOrNone(const Tensor& mask);
}  // namespace internal

/// Attention of several heads. On x [N, T, embed_dim] it is self-attention. On query [N, T, embed_dim] with key and
/// value [N, S, embed_dim] it reads another sequence, with masks where they are given. Both give [N, T, embed_dim]. A
/// query that masks of i1 let read nothing gives zeros before out_proj.
///
/// `in_proj` [3 embed_dim, embed_dim] makes queries, keys and values, in that order; a head has embed_dim / num_heads
/// neighbouring features of each. With another kdim or vdim, keys are [N, S, kdim] and values [N, S, vdim]. Then
/// q_proj_weight [embed_dim, embed_dim], k_proj_weight [embed_dim, kdim] and v_proj_weight [embed_dim, vdim] stand in
/// place of in_proj.weight, as PyTorch has them. Biases start at zero.
///
/// Products and attention are Allow, masks and movement Clear. With a floating mask, and with dropout while training,
/// scores and weights are values of the graph, of which there are N num_heads T S. Their softmax is Deny, and so f32;
/// dropout is Infer. A floating mask is cast to f32, and so scores with it are f32. Where a mask of i1 or `causal`
/// leaves scores out, that and the softmax are f32 at every AMP level and under ToFloat. On two sequences the products
/// with weights have the path of this Cell.
///
/// Samples come first, as with MindSpore's batch_first. Its add_bias_kv and add_zero_attn are not there, and weights of
/// attention are not returned.
class MultiHeadAttention : public Cell {
 public:
  MPC_CELL(MultiHeadAttention, in_proj, q_proj_weight, k_proj_weight, v_proj_weight, out_proj)
  MultiHeadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiHeadAttentionOptions& options = {});
  /// Attention with masks: attention(query, key, value, {.key_padding_mask = padding}).
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks);
  /// Takes x, or query, key and value, or these with key_padding_mask and attn_mask. A mask of rank 0 does nothing.
  /// Errors: shapes that do not fit, masks of another type.
  Tensor Construct(const std::vector<Tensor>& inputs);
  Dense in_proj;            ///< its weight is undefined with another kdim or vdim
  Parameter q_proj_weight;  ///< undefined without another kdim or vdim, as are the two below
  Parameter k_proj_weight;
  Parameter v_proj_weight;
  Dense out_proj;

 private:
  /// Both masks together, which broadcast to [N, num_heads, T, S].
  struct ScoreMasks {
    Tensor allowed;  ///< where each query may read; undefined: everywhere
    Tensor added;    ///< what is added to the scores; undefined: nothing
  };

  Tensor OfOneSequence(const Tensor& x);
  Tensor OfTwoSequences(const std::vector<Tensor>& inputs);
  /// Errors: those of Construct.
  absl::Status CheckSequences(const std::vector<Tensor>& inputs) const;
  absl::StatusOr<ScoreMasks> MasksOf(const std::vector<Tensor>& inputs) const;
  /// Attention of heads [N, num_heads, T or S, embed_dim / num_heads].
  Tensor Attended(const Tensor& query, const Tensor& key, const Tensor& value, const ScoreMasks& masks);
  /// out_proj of the heads [N, num_heads, T, embed_dim / num_heads].
  Tensor Projected(const Tensor& heads);

  std::int64_t embed_dim_;
  std::int64_t num_heads_;
  std::int64_t kdim_;
  std::int64_t vdim_;
  double dropout_;
  bool causal_;
};

/// MindSpore's name.
using MultiheadAttention = MultiHeadAttention;

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
