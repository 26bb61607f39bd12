// Functions of sequence and generator networks: batched products, attention, recurrent cells, transposed convolution,
// layer and group normalisation. See frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc {

struct BatchMatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
/// Matrix products [..., M, K] x [..., K, N] for each index of the equal leading axes, of which there is at least one.
Tensor batch_matmul(const Tensor& a, const Tensor& b, const BatchMatmulOptions& options = {});

struct AttentionOptions {
  std::optional<double> scale;  ///< scale of the scores; left out: 1 / sqrt(D)
  bool causal = false;          ///< row t reads columns s <= t + S - T only
};
/// softmax(scale * query key^T) value for query [B, H, T, D], key [B, H, S, D], value [B, H, S, E]: [B, H, T, E].
/// `mask` is i1, broadcast to [B, H, T, S], true where a position may be read; undefined: everywhere. A row that may
/// read nothing is 0.
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& mask = {}, const AttentionOptions& options = {});

struct ConvTranspose2dOpOptions {
  std::vector<std::int64_t> stride = {1, 1};
  std::string pad_mode = "valid";                     ///< same, valid, pad
  std::vector<std::int64_t> padding = {0, 0, 0, 0};   ///< top, bottom, left, right; "pad" removes it from the result
  std::vector<std::int64_t> output_padding = {0, 0};  ///< added at the end, smaller than the stride
  std::vector<std::int64_t> dilation = {1, 1};
  std::int64_t group = 1;
};
/// Transposed convolution: x [N, C, H, W], weight [C, O / group, kh, kw]; `bias` is [O] or undefined. Extents of the
/// result: (in - 1) * stride - padding + dilation * (kernel - 1) + 1 + output_padding, or in * stride with "same".
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const ConvTranspose2dOpOptions& options = {});

/// Normalises over the trailing axes, those of `gamma` and `beta`. Errors of norms: an epsilon that f32 does not hold.
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon = 1e-5);
/// Normalises each sample's groups of C / groups channels of x [N, C, H, W]; gamma and beta [C].
Tensor group_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, std::int64_t groups, double epsilon = 1e-5);

/// Hidden and cell state after the gates [N, 4 H], in the order input, forget, cell, output; `cell_state` is [N, H].
/// Cell states are f32: a low one is widened.
std::pair<Tensor, Tensor> lstm_cell(const Tensor& gates, const Tensor& cell_state);

/// Cross-entropy of sigmoid(logits) against labels of the same shape in [0, 1]; reduction none, mean or sum. The loss
/// is f32. An infinite logit gives 0 where it is on the label's side, else infinity; PyTorch mostly gives NaN.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& labels,
                                        const std::string& reduction = "mean");

namespace ops {

using mpc::batch_matmul, mpc::binary_cross_entropy_with_logits, mpc::conv_transpose2d, mpc::group_norm, mpc::layer_norm,
    mpc::lstm_cell, mpc::scaled_dot_product_attention;

}  // namespace ops
}  // namespace mpc
