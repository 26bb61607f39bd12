#include "frontend/graph/sequence_ops.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "frontend/graph/emit.h"
#include "kernels/dtype.h"

namespace mpc {

using internal::Emit;
using internal::EmitAll;

Tensor batch_matmul(const Tensor& a, const Tensor& b, const BatchMatmulOptions& options) {
  return Emit("batch_matmul", {a, b}, {{"transpose_a", options.transpose_a}, {"transpose_b", options.transpose_b}});
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                                    const AttentionOptions& options) {
  std::vector<Tensor> operands = {query, key, value};
  if (mask.defined()) operands.push_back(mask);
  const double width = query.defined() ? static_cast<double>(std::max<std::int64_t>(1, query.dim(-1))) : 1;
  return Emit("attention", operands,
              {{"scale", options.scale.value_or(1 / std::sqrt(width))}, {"causal", options.causal}});
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOpOptions& options) {
  std::vector<Tensor> operands = {x, weight};
  if (bias.defined()) operands.push_back(bias);
  return Emit("conv_transpose2d", operands,
              {{"strides", options.stride},
               {"dilations", options.dilation},
               {"pad_mode", options.pad_mode},
               {"padding", options.padding},
               {"output_padding", options.output_padding},
               {"groups", options.group}});
}

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon) {
  if (const std::string error = internal::EpsilonError("layer_norm", epsilon); !error.empty()) {
    return internal::FailWith(error, x.shape());
  }
  return Emit("layer_norm", {x, gamma, beta}, {{"epsilon", epsilon}});
}

Tensor group_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, std::int64_t groups, double epsilon) {
  if (const std::string error = internal::EpsilonError("group_norm", epsilon); !error.empty()) {
    return internal::FailWith(error, x.shape());
  }
  return Emit("group_norm", {x, gamma, beta}, {{"groups", groups}, {"epsilon", epsilon}});
}

std::pair<Tensor, Tensor> lstm_cell(const Tensor& gates, const Tensor& cell_state) {
  const bool is_low = cell_state.defined() && cell_state.status().ok() && IsLowPrecision(cell_state.dtype());
  const Tensor wide = is_low ? EmitAll("cast", {cell_state}, {}, DType::kF32)[0] : cell_state;
  const std::vector<Tensor> results = EmitAll("lstm_cell", {gates, wide}, {});
  return {results[0], results[1]};
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& labels, const std::string& reduction) {
  return Emit("bce_with_logits", {logits, labels}, {{"reduction", reduction}});
}

}  // namespace mpc
