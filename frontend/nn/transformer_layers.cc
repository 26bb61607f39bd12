#include "frontend/nn/transformer_layers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"

namespace mpc::nn {

using internal::MaskOrNone;
using mpc::internal::FailWith;

namespace {

// The masks that stand at `place` of a layer's inputs, if masks are given. Those of rank 0 do nothing: without any,
// attention to itself is one product of its weights.
AttentionMasks MasksAt(const std::vector<Tensor>& inputs, std::size_t place) {
  if (place + 1 >= inputs.size()) return {};
  const auto given = [](const Tensor& mask) { return mask.rank() == 0 ? Tensor() : mask; };
  return {.key_padding_mask = given(inputs[place]), .attn_mask = given(inputs[place + 1])};
}

// What stands for the result of a call with wrong inputs.
Tensor Reject(const std::string& error, const std::vector<Tensor>& inputs) {
  return FailWith(error, inputs.empty() ? Shape{1, 1, 1} : inputs[0].shape());
}

}  // namespace

TransformerLayer::TransformerLayer(std::int64_t d_model, std::int64_t nhead, const TransformerLayerOptions& options)
    : self_attn(d_model, nhead, {.causal = options.causal, .dropout = options.dropout}),
      linear1(d_model, options.dim_feedforward, {.activation = options.activation}),
      linear2(options.dim_feedforward, d_model),
      norm1({d_model}, {.epsilon = options.layer_norm_eps}),
      norm2({d_model}, {.epsilon = options.layer_norm_eps}),
      d_model_(d_model),
      options_(options) {}

std::string TransformerLayer::InputError(const std::vector<Tensor>& inputs, std::size_t sequences) const {
  const bool counts = inputs.size() == sequences || inputs.size() == 3 * sequences;
  const auto last = inputs.begin() + static_cast<std::ptrdiff_t>(counts ? sequences : 0);
  const bool fits = counts && std::all_of(inputs.begin(), last,
                                          [&](const Tensor& x) { return x.rank() == 3 && x.dim(2) == d_model_; });
  if (fits) return "";
  const std::string wanted = sequences == 1 ? absl::StrCat("x [N, T, ", d_model_, "], alone or with two masks")
                                            : absl::StrCat("x [N, T, ", d_model_, "] and memory [N, S, ", d_model_,
                                                           "], alone or with two masks for each");
  return absl::StrCat(TypeName(), " expects ", wanted, ", got ",
                      absl::StrJoin(inputs, ", ", [](std::string* text, const Tensor& x) {
                        absl::StrAppend(text, x.spec().ToString());
                      }));
}

Tensor TransformerLayer::Dropped(const Tensor& x) {
  return options_.dropout != 0 && training() ? dropout(x, options_.dropout) : x;
}

template <typename Part>
Tensor TransformerLayer::WithPart(LayerNorm& norm, const Tensor& x, const Part& part) {
  return options_.norm_first ? x + Dropped(part(norm(x))) : norm(x + Dropped(part(x)));
}

Tensor TransformerLayer::WithSelfAttention(const Tensor& x, const AttentionMasks& masks) {
  return WithPart(norm1, x, [&](const Tensor& y) {
    const bool masked = masks.key_padding_mask.defined() || masks.attn_mask.defined();
    return masked ? self_attn(y, y, y, masks) : self_attn(y);
  });
}

Tensor TransformerLayer::WithAttention(MultiHeadAttention& attention, LayerNorm& norm, const Tensor& x,
                                       const Tensor& memory, const AttentionMasks& masks) {
  return WithPart(norm, x, [&](const Tensor& y) { return attention(y, memory, memory, masks); });
}

Tensor TransformerLayer::WithFeedForward(LayerNorm& norm, const Tensor& x) {
  return WithPart(norm, x, [&](const Tensor& y) { return linear2(Dropped(linear1(y))); });
}

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerLayerOptions& options)
    : TransformerLayer(d_model, nhead, options) {}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const AttentionMasks& masks) {
  return (*this)(x, MaskOrNone(masks.key_padding_mask), MaskOrNone(masks.attn_mask));
}

Tensor TransformerEncoderLayer::Construct(const std::vector<Tensor>& inputs) {
  if (const std::string error = InputError(inputs, 1); !error.empty()) return Reject(error, inputs);
  return WithFeedForward(norm2, WithSelfAttention(inputs[0], MasksAt(inputs, 1)));
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerLayerOptions& options)
    : TransformerLayer(d_model, nhead, options),
      multihead_attn(d_model, nhead, {.dropout = options.dropout}),
      norm3({d_model}, {.epsilon = options.layer_norm_eps}) {}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory, const AttentionMasks& masks,
                                           const AttentionMasks& memory_masks) {
  return (*this)(x, memory, MaskOrNone(masks.key_padding_mask), MaskOrNone(masks.attn_mask),
                 MaskOrNone(memory_masks.key_padding_mask), MaskOrNone(memory_masks.attn_mask));
}

Tensor TransformerDecoderLayer::Construct(const std::vector<Tensor>& inputs) {
  if (const std::string error = InputError(inputs, 2); !error.empty()) return Reject(error, inputs);
  const Tensor x = WithSelfAttention(inputs[0], MasksAt(inputs, 2));
  return WithFeedForward(norm3, WithAttention(multihead_attn, norm2, x, inputs[1], MasksAt(inputs, 4)));
}

template <typename Layer>
TransformerStack<Layer>::TransformerStack(std::int64_t d_model, std::int64_t nhead, std::int64_t num_layers,
                                          const TransformerLayerOptions& options, bool has_norm)
    : norm({d_model}, {.epsilon = options.layer_norm_eps}) {
  for (std::int64_t i = 0; i < num_layers; ++i) layers.Append(AnyCell(Layer(d_model, nhead, options)));
  if (has_norm) return;
  norm.gamma = Parameter();
  norm.beta = Parameter();
}

template <typename Layer>
Tensor TransformerStack<Layer>::Construct(const std::vector<Tensor>& inputs) {
  if (layers.size() == 0 || inputs.empty()) {
    return Reject(absl::StrCat(TypeName(), " takes 1 layer or more and 1 tensor or more, got ", layers.size(), " and ",
                               inputs.size()),
                  inputs);
  }
  std::vector<Tensor> current = inputs;
  for (const AnyCell& layer : layers) current[0] = static_cast<Layer&>(layer.cell())(current);
  return norm.gamma.defined() ? norm(current[0]) : current[0];
}

template class TransformerStack<TransformerEncoderLayer>;
template class TransformerStack<TransformerDecoderLayer>;

Tensor TransformerEncoder::operator()(const Tensor& x, const AttentionMasks& masks) {
  return (*this)(x, MaskOrNone(masks.key_padding_mask), MaskOrNone(masks.attn_mask));
}

Tensor TransformerDecoder::operator()(const Tensor& x, const Tensor& memory, const AttentionMasks& masks,
                                      const AttentionMasks& memory_masks) {
  return (*this)(x, memory, MaskOrNone(masks.key_padding_mask), MaskOrNone(masks.attn_mask),
                 MaskOrNone(memory_masks.key_padding_mask), MaskOrNone(memory_masks.attn_mask));
}

}  // namespace mpc::nn
