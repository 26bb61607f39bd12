// BERT (Devlin et al. 2018): a transformer that reads both ways, with normalisation behind each part.
#pragma once

#include <cstdint>
#include <vector>

#include "models/transformer.h"
#include "mpc/mpc.h"

namespace mpc::models {

/// The defaults are BERT-base, uncased, with the head that predicts masked tokens and without the one that compares
/// sentences: 109,514,298 parameters.
struct BertConfig {
  std::int64_t vocabulary = 30522;
  std::int64_t context = 512;  ///< positions at most
  std::int64_t width = 768;    ///< 4 width features lie between the two layers of a block
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t segments = 2;  ///< kinds of a row's parts: first and second sentence
  double dropout = 0.0;       ///< rate for embeddings and for what each part adds; published with 0.1

  /// For tests and small machines.
  static BertConfig Tiny() { return {.vocabulary = 256, .context = 32, .width = 64, .layers = 2, .heads = 4}; }
};

/// norm(x + attention(x)), then norm(x + mlp(x)), on [N, T, width].
class BertBlock : public TransformerBlock {
 public:
  MPC_CELL(BertBlock)

  explicit BertBlock(const BertConfig& config)
      : TransformerBlock({.width = config.width, .heads = config.heads, .dropout = config.dropout, .epsilon = 1e-12}) {}

  Tensor Construct(Tensor x) {
    x = ln1(x + Attended(x));
    return ln2(x + FedForward(x));
  }
};

/// Token numbers [N, T] (i32 or i64), T <= context -> logits [N * T, vocabulary] of the token at each position; every
/// token is of segment 0. Every position reads every other one of its row: rows are full, there is no mask for padding.
/// The head (dense, gelu, norm) ends in the token table, with a bias a token. More tokens than the context are an
/// error.
class Bert : public nn::Cell {
 public:
  MPC_CELL(Bert, tokens, positions, segments, ln, drop, blocks, transform, ln_f, decoder_bias)

  explicit Bert(const BertConfig& config = {})
      : tokens(config.vocabulary, config.width, {.embedding_table = Normal(0.02)}),
        positions(config.context, config.width, {.embedding_table = Normal(0.02)}),
        segments(config.segments, config.width, {.embedding_table = Normal(0.02)}),
        ln({config.width}, {.epsilon = 1e-12}),
        drop({.p = config.dropout}),
        blocks(StackOf<BertBlock>(config)),
        transform(config.width, config.width, {.weight_init = Normal(0.02), .bias_init = Zeros()}),
        ln_f({config.width}, {.epsilon = 1e-12}),
        decoder_bias({config.vocabulary}, Zeros()),
        config_(config) {}

  Tensor Construct(Tensor ids) { return Logits(ids, Tensor::From(std::vector<std::int32_t>{0}, {1})); }

 protected:
  /// `kinds`: segment numbers, [N, T] or broadcast to it.
  Tensor Logits(const Tensor& ids, const Tensor& kinds) {
    Tensor x = ln(positions(PositionNumbers(ids, config_.context, TypeName())) + segments(kinds) + tokens(ids));
    if (config_.dropout > 0) x = drop(x);
    x = reshape(blocks(x), {-1, config_.width});
    x = ln_f(gelu(transform(x)));
    return matmul(x, tokens.embedding_table, decoder_bias, {.transpose_b = true});
  }

 private:
  nn::Embedding tokens;
  nn::Embedding positions;
  nn::Embedding segments;
  nn::LayerNorm ln;
  nn::Dropout drop;
  nn::SequentialCell blocks;
  nn::Dense transform;
  nn::LayerNorm ln_f;
  Parameter decoder_bias;
  BertConfig config_;
};

/// Bert for pairs of sentences: takes token numbers and segment numbers, both [N, T].
class BertOfPairs : public Bert {
 public:
  MPC_CELL(BertOfPairs)
  using Bert::Bert;
  Tensor Construct(const Tensor& ids, const Tensor& kinds) { return Logits(ids, kinds); }
};

/// Mean cross-entropy of logits [N * T, vocabulary] at the masked positions of labels [N, T]. A masked position holds
/// the number of the token to be found. The others hold -1 (or another negative number) and count neither in the sum
/// nor in its divisor. NaN where no position is masked.
class MaskedTokenLoss : public nn::LossBase {
 public:
  MPC_CELL(MaskedTokenLoss)
  Tensor Construct(const Tensor& logits, const Tensor& labels) {
    const Tensor expected = reshape(labels, {labels.size()});
    const Tensor masked = greater(expected, ops::Fill(labels.dtype(), {1}, -1));
    // A label outside the vocabulary has a loss of NaN and a gradient that is a multiple of its cotangent, here 0.
    const Tensor zero = ops::Fill(DType::kF32, {1}, 0);
    const Tensor losses = where(masked, softmax_cross_entropy(logits, expected, "none"), zero);
    return nn::MeanOfCounted(losses, where(masked, ops::Fill(DType::kF32, {1}, 1), zero));
  }
};

}  // namespace mpc::models
