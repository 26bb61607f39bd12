// GPT-2 (Radford et al. 2019): a decoder-only transformer with normalisation before each part.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/transformer.h"
#include "mpc/mpc.h"

namespace mpc::models {

/// The defaults are GPT-2 of 124,439,808 parameters.
struct Gpt2Config {
  std::int64_t vocabulary = 50257;
  std::int64_t context = 1024;  ///< positions at most
  std::int64_t width = 768;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  double dropout = 0.0;   ///< rate for embeddings and for what each part adds; published with 0.1
  double epsilon = 1e-5;  ///< that of all normalisations

  /// "gpt2-medium" of transformers: 354,823,168 parameters.
  static Gpt2Config Medium() { return {.width = 1024, .layers = 24, .heads = 16}; }
  /// "gpt2-large" of transformers: 774,030,080 parameters.
  static Gpt2Config Large() { return {.width = 1280, .layers = 36, .heads = 20}; }
  /// "gpt2-xl" of transformers: 1,557,611,200 parameters.
  static Gpt2Config Xl() { return {.width = 1600, .layers = 48, .heads = 25}; }
  /// For tests and small machines.
  static Gpt2Config Tiny() { return {.vocabulary = 256, .context = 32, .width = 64, .layers = 2, .heads = 4}; }
};

/// Reads transformers' "config.json". A field that it does not have is that of transformers, as published. Rates of
/// dropout are left out. Errors: all fields that change numbers and have values that Gpt2 does not compute, by name.
absl::StatusOr<Gpt2Config> ReadGpt2Config(const std::string& path);

/// x + attention(norm(x)), then x + mlp(norm(x)), on [N, T, width].
class Gpt2Block : public TransformerBlock {
 public:
  MPC_CELL(Gpt2Block)

  explicit Gpt2Block(const Gpt2Config& config)
      : TransformerBlock({.width = config.width,
                          .heads = config.heads,
                          .causal = true,
                          .dropout = config.dropout,
                          .epsilon = config.epsilon,
                          .gelu = "tanh",
                          .output_init = Residual(config)}) {}

  Tensor Construct(Tensor x) {
    x = x + Attended(ln1(x));
    return x + FedForward(ln2(x));
  }

 private:
  // What is added to the residual stream starts smaller by the square root of the number of additions.
  static Initializer Residual(const Gpt2Config& config) {
    return Normal(0.02 / std::sqrt(2.0 * static_cast<double>(config.layers)));
  }
};

/// Token numbers [N, T] (i32 or i64), T <= context -> logits [N * T, vocabulary] of the next token at each position.
/// The head is the token table: its gradient is the sum of both uses. More tokens than the context are an error.
class Gpt2 : public nn::Cell {
 public:
  MPC_CELL(Gpt2, tokens, positions, drop, blocks, ln_f)

  explicit Gpt2(const Gpt2Config& config = {})
      : tokens(config.vocabulary, config.width, {.embedding_table = Normal(0.02)}),
        positions(config.context, config.width, {.embedding_table = Normal(0.01)}),
        drop({.p = config.dropout}),
        ln_f({config.width}, {.epsilon = config.epsilon}),
        config_(config) {
    blocks = StackOf<Gpt2Block>(config);
  }

  /// The network and the weights of a folder that transformers' GPT2LMHeadModel has saved: "config.json", and
  /// "model.safetensors" or its shards. It has no dropout: with it, make a Gpt2 of ReadGpt2Config and load the weights.
  /// Errors: those of ReadGpt2Config and of LoadParamIntoNet.
  static absl::StatusOr<Gpt2> FromFolder(const std::string& path);

  Tensor Construct(Tensor ids) {
    Tensor x = tokens(ids) + positions(PositionNumbers(ids, config_.context, TypeName()));
    if (config_.dropout > 0) x = drop(x);
    x = ln_f(blocks(x));
    return matmul(reshape(x, {-1, config_.width}), tokens.embedding_table, {}, {.transpose_b = true});
  }

 private:
  nn::Embedding tokens;
  nn::Embedding positions;
  nn::Dropout drop;
  nn::SequentialCell blocks{std::vector<nn::AnyCell>()};
  nn::LayerNorm ln_f;
  Gpt2Config config_;
};

/// Mean cross-entropy of logits [N * T, vocabulary] and next tokens [N, T].
class NextTokenLoss : public nn::LossBase {
 public:
  MPC_CELL(NextTokenLoss)
  Tensor Construct(const Tensor& logits, const Tensor& labels) {
    return softmax_cross_entropy(logits, reshape(labels, {labels.size()}), "mean");
  }
};

}  // namespace mpc::models
