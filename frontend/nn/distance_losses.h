// Losses of distances and orders of tensors: f32 at every AMP level. Names and defaults are MindSpore's.
#pragma once

#include <string>

#include "frontend/nn/loss.h"

namespace mpc::nn {

struct CosineEmbeddingLossOptions {
  double margin = 0;               ///< in [-1, 1]: the cosine that unlike pairs may have
  std::string reduction = "mean";  ///< none, mean, sum
};

/// 1 - c for pairs whose label is 1, max(0, c - margin) for those whose label is -1. Here c is cosine_similarity of
/// rows a and b, [N, D]. Labels are [N], integers or floating. Pairs of another label have the loss 0. "none" gives
/// [N]. Errors: other shapes or types; a margin outside [-1, 1].
class CosineEmbeddingLoss : public LossBase {
 public:
  MPC_CELL(CosineEmbeddingLoss)
  explicit CosineEmbeddingLoss(const CosineEmbeddingLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& a, const Tensor& b, const Tensor& labels);

 private:
  CosineEmbeddingLossOptions options_;
};

struct MarginRankingLossOptions {
  double margin = 0;               ///< by how much the one that should be larger has to be
  std::string reduction = "mean";  ///< none, mean, sum
};

/// max(0, -t (a - b) + margin) for floating a, b and t of one shape. Here t is 1 where a should be larger and -1 where
/// b should. It has no gradient. Errors: other shapes or types; a margin that is not finite in f32.
class MarginRankingLoss : public LossBase {
 public:
  MPC_CELL(MarginRankingLoss)
  explicit MarginRankingLoss(const MarginRankingLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& a, const Tensor& b, const Tensor& target);

 private:
  MarginRankingLossOptions options_;
};

struct TripletMarginLossOptions {
  double p = 2;                    ///< order of the norm: 1, 2 or infinity
  bool swap = false;               ///< takes the distance of positive and negative where it is the smaller one
  double eps = 1e-6;               ///< added to differences, which keeps distances from 0
  std::string reduction = "mean";  ///< none, mean, sum
  double margin = 1;               ///< by how much the negative has to be further away; > 0
};

/// max(0, d(anchor, positive) - d(anchor, negative) + margin) of rows [N, D], where d(a, b) is the norm of a - b + eps.
/// "none" gives [N]. Errors: other shapes or types, another order, a margin or an eps that f32 does not hold.
class TripletMarginLoss : public LossBase {
 public:
  MPC_CELL(TripletMarginLoss)
  explicit TripletMarginLoss(const TripletMarginLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& anchor, const Tensor& positive, const Tensor& negative);

 private:
  TripletMarginLossOptions options_;
};

}  // namespace mpc::nn
