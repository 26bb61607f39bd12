// Layers of transformers (Vaswani et al., "Attention Is All You Need", 2017). Names and defaults are those of MindSpore
// and PyTorch, names of Parameters PyTorch's. Samples come first, as in MultiHeadAttention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/graph/cell.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/sequence_layers.h"

namespace mpc::nn {

struct TransformerLayerOptions {
  std::int64_t dim_feedforward = 2048;  ///< features between linear1 and linear2
  /// Probability of zero while training: of weights of attention, of features between linear1 and linear2, and of what
  /// each part adds.
  double dropout = 0.1;
  std::string activation = "relu";  ///< behind linear1, as that of Dense: relu, gelu (the erf form), gelu_tanh
  double layer_norm_eps = 1e-5;
  bool norm_first = false;  ///< normalises what a part reads; false: the sum of that and of what the part gives
  bool causal = false;      ///< self-attention reads no later position; then it needs no mask
};

/// Base of the layers: attention and two dense layers, each added to what it reads.
class TransformerLayer : public Cell {
 public:
  MPC_CELL(TransformerLayer, self_attn, linear1, linear2, norm1, norm2)
  MultiHeadAttention self_attn;
  Dense linear1;
  Dense linear2;
  LayerNorm norm1;
  LayerNorm norm2;

 protected:
  TransformerLayer(std::int64_t d_model, std::int64_t nhead, const TransformerLayerOptions& options);
  /// Empty, or why `inputs` are not `sequences` of [N, T, d_model], with or without two masks for each.
  std::string InputError(const std::vector<Tensor>& inputs, std::size_t sequences) const;
  /// x with self_attn of x, normalised by norm1.
  Tensor WithSelfAttention(const Tensor& x, const AttentionMasks& masks);
  /// x with `attention` of x to `memory`, normalised by `norm`.
  Tensor WithAttention(MultiHeadAttention& attention, LayerNorm& norm, const Tensor& x, const Tensor& memory,
                       const AttentionMasks& masks);
  /// x with linear2(activation(linear1(x))), normalised by `norm`.
  Tensor WithFeedForward(LayerNorm& norm, const Tensor& x);

 private:
  /// x with `part` of x, normalised by `norm`.
  template <typename Part>
  Tensor WithPart(LayerNorm& norm, const Tensor& x, const Part& part);
  Tensor Dropped(const Tensor& x);

  std::int64_t d_model_;
  TransformerLayerOptions options_;
};

/// x [N, T, d_model] -> the same: self-attention of `nhead` heads (norm1), then dense layers (norm2). AMP classes are
/// those of MultiHeadAttention, Dense, LayerNorm and dropout. Sums are Infer. Errors: other shapes, and those of the
/// parts.
class TransformerEncoderLayer : public TransformerLayer {
 public:
  MPC_CELL(TransformerEncoderLayer)
  TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead, const TransformerLayerOptions& options = {});
  /// With masks: layer(x, {.key_padding_mask = padding}).
  Tensor operator()(const Tensor& x, const AttentionMasks& masks);
  /// Takes x, or x with key_padding_mask and attn_mask. A mask of rank 0 does nothing.
  Tensor Construct(const std::vector<Tensor>& inputs);
};

/// x [N, T, d_model] with memory [N, S, d_model] -> x's: self-attention (norm1), attention to the memory (norm2), then
/// dense layers (norm3). AMP classes and errors are those of TransformerEncoderLayer. `causal` is of self-attention.
class TransformerDecoderLayer : public TransformerLayer {
 public:
  MPC_CELL(TransformerDecoderLayer, multihead_attn, norm3)
  TransformerDecoderLayer(std::int64_t d_model, std::int64_t nhead, const TransformerLayerOptions& options = {});
  /// With masks of x, and of the memory.
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMasks& masks,
                    const AttentionMasks& memory_masks = {});
  /// Takes x and memory, alone or with key_padding_mask and attn_mask of x, then of the memory.
  Tensor Construct(const std::vector<Tensor>& inputs);
  MultiHeadAttention multihead_attn;
  LayerNorm norm3;
};

/// Base of stacks: layers one behind the other, and a LayerNorm behind the last one if the stack has it.
template <typename Layer>
class TransformerStack : public Cell {
 public:
  MPC_CELL(TransformerStack, layers, norm)
  /// Takes what a layer takes. The masks are for every layer.
  Tensor Construct(const std::vector<Tensor>& inputs);
  CellList layers;
  LayerNorm norm;  ///< its Parameters are undefined in a stack without it

 protected:
  TransformerStack(std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers,
                   const TransformerLayerOptions& options, bool has_norm);
};

/// `num_layers` encoder layers, with initial values of their own. In MindSpore and PyTorch they begin as copies of one
/// layer. `has_norm` adds the LayerNorm that layers with norm_first need at the end. Paths of Parameters begin with
/// "layers.0" and "norm". Calls and errors are those of TransformerEncoderLayer.
class TransformerEncoder : public TransformerStack<TransformerEncoderLayer> {
 public:
  MPC_CELL(TransformerEncoder)
  TransformerEncoder(std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers,
                     const TransformerLayerOptions& options = {}, bool has_norm = false)
      : TransformerStack(d_model, nhead, num_layers, options, has_norm) {}
  Tensor operator()(const Tensor& x, const AttentionMasks& masks);
};

/// `num_layers` decoder layers, as TransformerEncoder has encoder layers. Each reads the same memory.
class TransformerDecoder : public TransformerStack<TransformerDecoderLayer> {
 public:
  MPC_CELL(TransformerDecoder)
  TransformerDecoder(std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers,
                     const TransformerLayerOptions& options = {}, bool has_norm = false)
      : TransformerStack(d_model, nhead, num_layers, options, has_norm) {}
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionMasks& masks,
                    const AttentionMasks& memory_masks = {});
};

}  // namespace mpc::nn
