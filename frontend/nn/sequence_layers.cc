#include "frontend/nn/sequence_layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/graph/cell_stack.h"
#include "frontend/graph/composed_ops.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/trace.h"
#include "frontend/nn/channel_groups.h"
#include "frontend/nn/uniform_below.h"

namespace mpc::nn {
namespace {

using mpc::internal::FailWith;

/// The score of a position that is left out, in f32. It is finite, and below what a score or a mask of -1e9 may be.
constexpr float kLowestScore = std::numeric_limits<float>::lowest();

/// Softmax over the positions that are allowed. A row without one has equal weights.
Tensor SoftmaxWhere(const Tensor& allowed, const Tensor& scores) {
  // f32 at every AMP level: in f16 the lowest score would be minus infinity, and a row of these NaN.
  std::optional<mpc::internal::CellStack::FixedScope> fixed;
  if (auto* trace = mpc::internal::Trace::Current()) {
    const compiler::Scope scope = trace->cells().scope();
    fixed.emplace(trace->cells(),
                  compiler::Scope{.path = scope.path, .pin = DType::kF32, .recompute = scope.recompute});
  }
  return softmax(where(allowed, scores, Tensor::Scalar(kLowestScore)));
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
  if ((x.rank() != 3 && x.rank() != 4) || x.dim(1) != num_channels_) {
    return FailWith(absl::StrCat("GroupNorm expects a rank-3 or rank-4 tensor with ", num_channels_,
                                 " channels on axis 1, got ", x.spec().ToString()),
                    x.shape());
  }
  if (x.rank() == 3) {
    const Tensor image = reshape(x, {x.dim(0), x.dim(1), 1, x.dim(2)});
    return reshape(group_norm(image, gamma, beta, num_groups_, eps_), x.shape());
  }
  return group_norm(x, gamma, beta, num_groups_, eps_);
}

Conv2dTranspose::Conv2dTranspose(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size,
                                 const Conv2dTransposeOptions& options)
    : in_channels_(in_channels),
      out_channels_(out_channels),
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
  if (std::string error = internal::GroupError("Conv2dTranspose", options_.group, in_channels_, out_channels_);
      !error.empty()) {
    return FailWith(error, x.shape());
  }
  if (x.rank() == 4 && x.dim(1) != in_channels_) {
    return FailWith(absl::StrCat("Conv2dTranspose expects ", in_channels_, " input channels, got ", x.dim(1),
                                 " (input ", x.spec().ToString(), ")"),
                    x.shape());
  }
  return conv_transpose2d(x, weight, bias.defined() ? bias.Read() : Tensor(), options_);
}

Tensor internal::MaskOrNone(const Tensor& mask) { return mask.defined() ? mask : Tensor::Scalar(false); }

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
      kdim_(options.kdim.value_or(embed_dim)),
      vdim_(options.vdim.value_or(embed_dim)),
      dropout_(options.dropout),
      causal_(options.causal) {
  if (kdim_ == embed_dim && vdim_ == embed_dim) return;
  const Initializer weight_init = options.weight_init.value_or(XavierUniform());
  in_proj.weight = Parameter();
  q_proj_weight = Parameter({embed_dim, embed_dim}, weight_init);
  k_proj_weight = Parameter({embed_dim, kdim_}, weight_init);
  v_proj_weight = Parameter({embed_dim, vdim_}, weight_init);
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const AttentionMasks& masks) {
  return (*this)(query, key, value, internal::MaskOrNone(masks.key_padding_mask),
                 internal::MaskOrNone(masks.attn_mask));
}

Tensor MultiHeadAttention::Construct(const std::vector<Tensor>& inputs) {
  const Shape shape = inputs.empty() ? Shape{1, 1, 1} : inputs[0].shape();
  if (num_heads_ < 1 || embed_dim_ % num_heads_ != 0) {
    return FailWith(
        absl::StrCat("MultiHeadAttention: num_heads = ", num_heads_, " must divide embed_dim = ", embed_dim_), shape);
  }
  if (inputs.size() != 1 && inputs.size() != 3 && inputs.size() != 5) {
    return FailWith(absl::StrCat("MultiHeadAttention takes x, or query, key and value, with or without two masks, got ",
                                 inputs.size(), " tensors"),
                    shape);
  }
  if (absl::Status status = CheckSequences(inputs); !status.ok()) return FailWith(std::string(status.message()), shape);
  return inputs.size() == 1 ? OfOneSequence(inputs[0]) : OfTwoSequences(inputs);
}

absl::Status MultiHeadAttention::CheckSequences(const std::vector<Tensor>& inputs) const {
  if (inputs.size() == 1 && q_proj_weight.defined()) {
    return absl::InvalidArgumentError(absl::StrCat("MultiHeadAttention with kdim = ", kdim_, " and vdim = ", vdim_,
                                                   " takes query, key and value, got one tensor"));
  }
  const std::int64_t widths[] = {embed_dim_, kdim_, vdim_};
  for (std::size_t i = 0; i < std::min<std::size_t>(3, inputs.size()); ++i) {
    const Tensor& x = inputs[i];
    if (x.rank() == 3 && x.dim(2) == widths[i]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("MultiHeadAttention expects [N, T, ", widths[i], "], got ", x.spec().ToString()));
  }
  if (inputs.size() == 1) return absl::OkStatus();
  const std::int64_t samples = inputs[0].dim(0);
  if (inputs[1].dim(0) == samples && inputs[2].dim(0) == samples && inputs[1].dim(1) == inputs[2].dim(1)) {
    return absl::OkStatus();
  }
  const std::string key_width = kdim_ == vdim_ ? "" : absl::StrCat(" [N, S, ", kdim_, "]");
  return absl::InvalidArgumentError(absl::StrCat(
      "MultiHeadAttention expects query [N, T, ", embed_dim_, "] with key", key_width, " and value [N, S, ", vdim_,
      "], got ", inputs[0].spec().ToString(), ", ", inputs[1].spec().ToString(), " and ", inputs[2].spec().ToString()));
}

Tensor MultiHeadAttention::OfOneSequence(const Tensor& x) {
  const std::int64_t samples = x.dim(0);
  const std::int64_t positions = x.dim(1);
  const std::int64_t head_width = embed_dim_ / num_heads_;
  const Tensor projected = in_proj(reshape(x, {samples * positions, embed_dim_}));
  // Heads first, so that queries, keys and values are contiguous pieces.
  const Tensor heads = transpose(reshape(projected, {samples, positions, 3, num_heads_, head_width}), {2, 0, 3, 1, 4});
  std::vector<Tensor> parts = split(heads, {1, 1, 1}, 0);
  for (Tensor& part : parts) part = reshape(part, {samples, num_heads_, positions, head_width});
  return Projected(Attended(parts[0], parts[1], parts[2], {}));
}

Tensor MultiHeadAttention::OfTwoSequences(const std::vector<Tensor>& inputs) {
  const absl::StatusOr<ScoreMasks> masks = MasksOf(inputs);
  if (!masks.ok()) return FailWith(std::string(masks.status().message()), inputs[0].shape());
  const std::vector<std::int64_t> parts(3, embed_dim_);
  const std::vector<Tensor> weights =
      q_proj_weight.defined() ? std::vector<Tensor>{q_proj_weight.Read(), k_proj_weight.Read(), v_proj_weight.Read()}
                              : split(in_proj.weight, parts, 0);
  const std::vector<Tensor> biases =
      in_proj.bias.defined() ? split(in_proj.bias, parts, 0) : std::vector<Tensor>(parts.size());
  std::vector<Tensor> heads;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const Tensor& x = inputs[part];
    const Tensor y =
        matmul(reshape(x, {x.dim(0) * x.dim(1), x.dim(2)}), weights[part], biases[part], {.transpose_b = true});
    heads.push_back(transpose(reshape(y, {x.dim(0), x.dim(1), num_heads_, embed_dim_ / num_heads_}), {0, 2, 1, 3}));
  }
  return Projected(Attended(heads[0], heads[1], heads[2], *masks));
}

Tensor MultiHeadAttention::Attended(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const ScoreMasks& masks) {
  // A Cell without dropout does not ask whether it trains.
  const bool drops = dropout_ != 0 && training();
  if (!drops && !masks.added.defined()) {
    return scaled_dot_product_attention(query, key, value, masks.allowed, {.scale = {}, .causal = causal_});
  }
  const std::int64_t queries = query.dim(2), keys = key.dim(2);
  Tensor scores = batch_matmul(query * (1 / std::sqrt(static_cast<double>(query.dim(3)))), key, {.transpose_b = true});
  if (masks.added.defined()) scores = scores + masks.added;
  Tensor allowed = masks.allowed;
  if (causal_) {
    const Tensor earlier = tril(Tensor::Full({queries, keys}, 1, DType::kBool), keys - queries);
    allowed = allowed.defined() ? logical_and(allowed, earlier) : earlier;
  }
  Tensor weights = allowed.defined() ? SoftmaxWhere(allowed, scores) : softmax(scores);
  if (allowed.defined()) weights = where(allowed, weights, Tensor::Scalar(0.0f));
  if (drops) weights = dropout(weights, dropout_);
  return batch_matmul(weights, value);
}

absl::StatusOr<MultiHeadAttention::ScoreMasks> MultiHeadAttention::MasksOf(const std::vector<Tensor>& inputs) const {
  const std::int64_t samples = inputs[0].dim(0), queries = inputs[0].dim(1), keys = inputs[1].dim(1);
  Tensor left_out;
  ScoreMasks masks;
  const auto add = [&](const char* name, const Tensor& mask, const std::vector<std::pair<Shape, Shape>>& shapes) {
    if (mask.dtype() != DType::kBool && !IsFloating(mask.dtype())) {
      return absl::InvalidArgumentError(
          absl::StrCat("MultiHeadAttention takes a mask of i1, true where a position is left out, or a floating one, "
                       "which is added to the scores, got ",
                       name, " ", mask.spec().ToString()));
    }
    if (mask.rank() == 0) return absl::OkStatus();
    std::string expected;
    for (const auto& [shape, broadcast] : shapes) {
      if (mask.shape() == shape) {
        if (mask.dtype() != DType::kBool) {
          // -1e9 would be minus infinity in f16. After such a cast the scores and their softmax are f32 too.
          const Tensor part = reshape(cast(mask, DType::kF32), broadcast);
          masks.added = masks.added.defined() ? masks.added + part : part;
        } else {
          const Tensor part = reshape(mask, broadcast);
          left_out = left_out.defined() ? logical_or(left_out, part) : part;
        }
        return absl::OkStatus();
      }
      absl::StrAppend(&expected, expected.empty() ? "" : " or ", ShapeToString(shape));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("MultiHeadAttention expects ", name, " of shape ", expected, ", got ", mask.spec().ToString()));
  };
  if (inputs.size() < 5) return masks;
  absl::Status status = add("key_padding_mask", inputs[3], {{Shape{samples, keys}, Shape{samples, 1, 1, keys}}});
  if (status.ok()) {
    status = add("attn_mask", inputs[4],
                 {{Shape{queries, keys}, Shape{1, 1, queries, keys}},
                  {Shape{samples * num_heads_, queries, keys}, Shape{samples, num_heads_, queries, keys}}});
  }
  if (!status.ok()) return status;
  if (left_out.defined()) masks.allowed = logical_not(left_out);
  return masks;
}

Tensor MultiHeadAttention::Projected(const Tensor& heads) {
  const std::int64_t samples = heads.dim(0), positions = heads.dim(2);
  const Tensor joined = reshape(transpose(heads, {0, 2, 1, 3}), {samples * positions, embed_dim_});
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
