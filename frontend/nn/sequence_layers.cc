#include "frontend/nn/sequence_layers.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"

namespace mpc::nn {
namespace {

using mpc::internal::FailWith;

Initializer UniformBelow(std::int64_t fan) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, fan)));
  return UniformRange(-bound, bound);
}

}  // namespace

LayerNorm::LayerNorm(Shape normalized_shape, const LayerNormOptions& options)
    : gamma(normalized_shape, options.gamma_init),
      beta(normalized_shape, options.beta_init),
      normalized_shape_(std::move(normalized_shape)),
      epsilon_(options.epsilon) {}

Tensor LayerNorm::Construct(const Tensor& x) {
  const Shape& shape = x.shape();
  if (shape.size() < normalized_shape_.size() ||
      !std::equal(normalized_shape_.rbegin(), normalized_shape_.rend(), shape.rbegin())) {
    return FailWith(absl::StrCat("LayerNorm expects trailing extents ", ShapeToString(normalized_shape_), ", got ",
                                 x.spec().ToString()),
                    shape);
  }
  return layer_norm(x, gamma, beta, epsilon_);
}

GroupNorm::GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options)
    : gamma({num_channels}, options.gamma_init, {.requires_grad = options.affine}),
      beta({num_channels}, options.beta_init, {.requires_grad = options.affine}),
      num_groups_(num_groups),
      num_channels_(num_channels),
      eps_(options.eps) {}

Tensor GroupNorm::Construct(const Tensor& x) {
  if (x.rank() != 4 || x.dim(1) != num_channels_) {
    return FailWith(absl::StrCat("GroupNorm expects a rank-4 tensor with ", num_channels_, " channels on axis 1, got ",
                                 x.spec().ToString()),
                    x.shape());
  }
  return group_norm(x, gamma, beta, num_groups_, eps_);
}

Conv2dTranspose::Conv2dTranspose(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size,
                                 const Conv2dTransposeOptions& options)
    : in_channels_(in_channels),
      options_{
          .stride = options.stride.values(),
          .pad_mode = options.pad_mode,
          .padding = options.padding.size() == 1 ? std::vector<std::int64_t>(4, options.padding[0]) : options.padding,
          .output_padding = options.output_padding.values(),
          .dilation = options.dilation.values(),
          .group = options.group} {
  const std::int64_t group_channels = out_channels / std::max<std::int64_t>(1, options.group);
  weight = Parameter({in_channels, group_channels, kernel_size.height, kernel_size.width},
                     options.weight_init.value_or(HeUniform(std::sqrt(5.0))));
  if (options.has_bias) {
    const std::int64_t fan_in = group_channels * kernel_size.height * kernel_size.width;
    bias = Parameter({out_channels}, options.bias_init.value_or(UniformBelow(fan_in)));
  }
}

Tensor Conv2dTranspose::Construct(const Tensor& x) {
  if (x.rank() == 4 && x.dim(1) != in_channels_) {
    return FailWith(absl::StrCat("Conv2dTranspose expects ", in_channels_, " input channels, got ", x.dim(1),
                                 " (input ", x.spec().ToString(), ")"),
                    x.shape());
  }
  return conv_transpose2d(x, weight, bias.defined() ? bias.Read() : Tensor(), options_);
}

MultiHeadAttention::MultiHeadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                                       const MultiHeadAttentionOptions& options)
    : in_proj(embed_dim, 3 * embed_dim,
              {.has_bias = options.has_bias,
               .weight_init = options.weight_init.value_or(XavierUniform()),
               .bias_init = Zeros()}),
      out_proj(embed_dim, embed_dim,
               {.has_bias = options.has_bias,
                .weight_init = options.output_init.value_or(options.weight_init.value_or(XavierUniform())),
                .bias_init = Zeros()}),
      embed_dim_(embed_dim),
      num_heads_(num_heads),
      causal_(options.causal) {}

Tensor MultiHeadAttention::Construct(const Tensor& x) {
  if (num_heads_ < 1 || embed_dim_ % num_heads_ != 0) {
    return FailWith(
        absl::StrCat("MultiHeadAttention: num_heads = ", num_heads_, " must divide embed_dim = ", embed_dim_),
        x.shape());
  }
  if (x.rank() != 3 || x.dim(2) != embed_dim_) {
    return FailWith(absl::StrCat("MultiHeadAttention expects [N, T, ", embed_dim_, "], got ", x.spec().ToString()),
                    x.shape());
  }
  const std::int64_t samples = x.dim(0);
  const std::int64_t positions = x.dim(1);
  const std::int64_t head_width = embed_dim_ / num_heads_;
  const Tensor projected = in_proj(reshape(x, {samples * positions, embed_dim_}));
  // Heads first, so that queries, keys and values are contiguous pieces.
  const Tensor heads = transpose(reshape(projected, {samples, positions, 3, num_heads_, head_width}), {2, 0, 3, 1, 4});
  std::vector<Tensor> parts = split(heads, {1, 1, 1}, 0);
  for (Tensor& part : parts) part = reshape(part, {samples, num_heads_, positions, head_width});
  const Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, {.scale = {}, .causal = causal_});
  const Tensor joined = reshape(transpose(y, {0, 2, 1, 3}), {samples * positions, embed_dim_});
  return reshape(out_proj(joined), {samples, positions, embed_dim_});
}

LSTMCell::LSTMCell(std::int64_t input_size, std::int64_t hidden_size, const LSTMCellOptions& options)
    : weight_ih({4 * hidden_size, input_size}, UniformBelow(hidden_size)),
      weight_hh({4 * hidden_size, hidden_size}, UniformBelow(hidden_size)),
      input_size_(input_size),
      hidden_size_(hidden_size) {
  if (!options.has_bias) return;
  bias_ih = Parameter({4 * hidden_size}, UniformBelow(hidden_size));
  bias_hh = Parameter({4 * hidden_size}, UniformBelow(hidden_size));
}

std::pair<Tensor, Tensor> LSTMCell::Construct(const Tensor& x, const Tensor& h, const Tensor& c) {
  const auto is = [](const Tensor& tensor, std::int64_t rows, std::int64_t width) {
    return tensor.rank() == 2 && tensor.dim(0) == rows && tensor.dim(1) == width;
  };
  const std::int64_t rows = x.dim(0);
  if (!is(x, rows, input_size_) || !is(h, rows, hidden_size_) || !is(c, rows, hidden_size_)) {
    const Tensor error =
        FailWith(absl::StrCat("LSTMCell expects x [N, ", input_size_, "] and states h and c [N, ", hidden_size_,
                              "], got ", x.spec().ToString(), ", ", h.spec().ToString(), " and ", c.spec().ToString()),
                 {rows, hidden_size_});
    return {error, error};
  }
  const auto optional = [](const Parameter& bias) { return bias.defined() ? bias.Read() : Tensor(); };
  const Tensor gates = matmul(x, weight_ih, optional(bias_ih), {.transpose_b = true}) +
                       matmul(h, weight_hh, optional(bias_hh), {.transpose_b = true});
  return lstm_cell(gates, c);
}

}  // namespace mpc::nn
