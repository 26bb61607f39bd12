// Losses of margins between scores and labels: f32 at every AMP level. Names and defaults are MindSpore's.
#pragma once

#include <string>

#include "frontend/nn/loss.h"

namespace mpc::nn {

struct HingeEmbeddingLossOptions {
  double margin = 1;               ///< what an x of label -1 should reach
  std::string reduction = "mean";  ///< none, mean, sum
};

/// x where the label is 1, max(0, margin - x) where it is -1. Labels have the shape of a floating x, and are integers
/// or floating. Another label has the sum of both, as in PyTorch. Errors: other shapes or types; a margin that is not
/// finite in f32.
class HingeEmbeddingLoss : public LossBase {
 public:
  MPC_CELL(HingeEmbeddingLoss)
  explicit HingeEmbeddingLoss(const HingeEmbeddingLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& x, const Tensor& labels);

 private:
  HingeEmbeddingLossOptions options_;
};

struct SoftMarginLossOptions {
  std::string reduction = "mean";  ///< none, mean, sum
};

/// log(1 + exp(-t x)) for floating x and targets t of one shape, which are 1 and -1. It is softplus of -t x, which no
/// finite product makes overflow, as PyTorch's exponential does. The target has no gradient. Errors: other shapes or
/// types.
class SoftMarginLoss : public LossBase {
 public:
  MPC_CELL(SoftMarginLoss)
  explicit SoftMarginLoss(const SoftMarginLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& x, const Tensor& target);

 private:
  SoftMarginLossOptions options_;
};

struct MultiLabelSoftMarginLossOptions {
  Tensor weight = {};              ///< one factor a class, concrete and floating [C]; undefined: 1 for each
  std::string reduction = "mean";  ///< none, mean, sum
};

/// The mean over classes of w (-t log s - (1 - t) log(1 - s)), for s = sigmoid(x), of rows x and targets t, [N, C].
/// A target is 1 where a row has the class, else 0, and has no gradient. "none" gives [N]. The formula is PyTorch's.
/// Infinite logits are as in BCEWithLogitsLoss. Errors: other shapes or types; weights that are not C.
class MultiLabelSoftMarginLoss : public LossBase {
 public:
  MPC_CELL(MultiLabelSoftMarginLoss)
  explicit MultiLabelSoftMarginLoss(const MultiLabelSoftMarginLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& logits, const Tensor& target);

 private:
  MultiLabelSoftMarginLossOptions options_;
};

struct MultiMarginLossOptions {
  int p = 1;                       ///< power of each term, 1 or 2
  double margin = 1;               ///< by how much the label's score should be the larger one
  std::string reduction = "mean";  ///< none, mean, sum
  Tensor weight = {};              ///< one factor a class, concrete and floating [C]; undefined: 1 for each
};

/// w[y] / C times the sum over classes i other than y of max(0, margin - x[y] + x[i])^p. Scores x are floating [N, C],
/// labels y integers [N]. "none" gives [N], and "mean" divides by N. The weight stands outside the power, as PyTorch
/// computes it. A label out of range gives NaN. Where labels are an input of the step, and the reduction is not "none",
/// running the step fails with its row and label. Errors: other shapes or types; another power; a margin that is not
/// finite in f32; weights that are not C.
class MultiMarginLoss : public LossBase {
 public:
  MPC_CELL(MultiMarginLoss)
  explicit MultiMarginLoss(const MultiMarginLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& scores, const Tensor& labels);

 private:
  MultiMarginLossOptions options_;
};

}  // namespace mpc::nn
