// What transformers share: GPT-2 (gpt2.h), BERT (bert.h) and ViT (vit.h).
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc/mpc.h"

namespace mpc::models {

struct TransformerBlockOptions {
  std::int64_t width = 0;
  std::int64_t heads = 0;
  bool causal = false;
  double dropout = 0;                      ///< rate for what each part gives
  double epsilon = 1e-5;                   ///< that of both normalisations
  std::string gelu = "none";               ///< approximation of gelu: none, tanh
  Initializer output_init = Normal(0.02);  ///< for weights whose products are added to the residual stream
};

/// The parts of a block on [N, T, width]; a derived class says in which order they stand and where it normalises.
/// Weights are drawn from N(0, 0.02^2) where the options do not say otherwise, biases start at zero.
class TransformerBlock : public nn::Cell {
 public:
  MPC_CELL(TransformerBlock, ln1, attention, ln2, expand, contract, drop)

  explicit TransformerBlock(const TransformerBlockOptions& options)
      : ln1({options.width}, {.epsilon = options.epsilon}),
        attention(options.width, options.heads,
                  {.causal = options.causal, .weight_init = Normal(0.02), .output_init = options.output_init}),
        ln2({options.width}, {.epsilon = options.epsilon}),
        expand(options.width, 4 * options.width, {.weight_init = Normal(0.02), .bias_init = Zeros()}),
        contract(4 * options.width, options.width, {.weight_init = options.output_init, .bias_init = Zeros()}),
        drop({.p = options.dropout}),
        has_dropout_(options.dropout > 0),
        gelu_(options.gelu) {}

 protected:
  Tensor Attended(const Tensor& x) { return Dropped(attention(x)); }
  /// contract(gelu(expand(x))), through 4 width features.
  Tensor FedForward(const Tensor& x) {
    const Tensor rows = reshape(x, {-1, x.dim(2)});
    return Dropped(reshape(contract(gelu(expand(rows), gelu_)), x.shape()));
  }

  nn::LayerNorm ln1;
  nn::MultiHeadAttention attention;
  nn::LayerNorm ln2;
  nn::Dense expand;
  nn::Dense contract;
  nn::Dropout drop;

 private:
  Tensor Dropped(const Tensor& x) { return has_dropout_ ? drop(x) : x; }

  bool has_dropout_;
  std::string gelu_;
};

/// config.layers of them, one behind the other.
template <typename Block, typename Config>
nn::SequentialCell StackOf(const Config& config) {
  std::vector<nn::AnyCell> layers;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) layers.emplace_back(Block(config));
  return nn::SequentialCell(std::move(layers));
}

/// 0, 1, ... of the positions of a row: i32 [length].
inline Tensor PositionNumbers(std::int64_t length) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(length));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Tensor::From(numbers, {length});
}

/// Those of token numbers [N, T]. More than `context` tokens a row are an error of the trace, in the name of `model`.
inline Tensor PositionNumbers(const Tensor& ids, std::int64_t context, const std::string& model) {
  const std::int64_t length = ids.dim(-1);
  if (auto* trace = mpc::internal::Trace::Current(); trace != nullptr && length > context) {
    trace->Fail(absl::StrCat(model, " takes at most ", context, " tokens a row, got ", length, " (token numbers ",
                             ids.spec().ToString(), ")"));
  }
  return PositionNumbers(length);
}

}  // namespace mpc::models
