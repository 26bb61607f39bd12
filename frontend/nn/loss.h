// Loss Cells: f32 at every AMP level.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/graph/cell.h"
#include "frontend/graph/ops.h"

namespace mpc::nn {

/// Base of losses: (logits, labels) -> loss.
class LossBase : public Cell {
 public:
  bool is_loss() const override { return true; }
};

/// sum(losses) / sum(weights), the f32 scalar of a loss that leaves elements out. `losses` and `weights` are floating
/// and of as many elements. Both are 0 where an element does not count, and a weight is mostly 1 where it does. NaN
/// where none counts.
///
/// Where SetAutoParallelContext asks for LossWeight::kElements, a step weighs its micro-batch by the sum of `weights`.
/// A loss in which none counts is 0 there, without a gradient. An update takes one such mean for each loss that it
/// differentiates; more are an error of the compiler.
Tensor MeanOfCounted(const Tensor& losses, const Tensor& weights);

struct SoftmaxCrossEntropyOptions {
  bool sparse = false;             ///< labels are class indices [N] instead of floating one-hot rows [N, C]
  std::string reduction = "none";  ///< none, mean, sum
};

/// Cross-entropy of softmax(logits) against labels. The defaults are MindSpore's.
class SoftmaxCrossEntropyWithLogits : public LossBase {
 public:
  MPC_CELL(SoftmaxCrossEntropyWithLogits)
  explicit SoftmaxCrossEntropyWithLogits(const SoftmaxCrossEntropyOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& logits, const Tensor& labels);

 private:
  SoftmaxCrossEntropyOptions options_;
};

struct CrossEntropyLossOptions {
  Tensor weight = {};                ///< one factor a class, floating [C]; undefined: 1 for each
  std::int64_t ignore_index = -100;  ///< positions with this label are left out; it may lie outside the classes
  std::string reduction = "mean";    ///< none, mean, sum
  double label_smoothing = 0;        ///< in [0, 1]: the share of the target that is spread evenly over the classes
};

/// Cross-entropy of softmax(logits) over axis 1. Logits: floating [N, C, d1, ...]. Names and defaults are MindSpore's.
///
/// Labels are class indices, integers [N, d1, ...]. A position with label y has the loss
/// (1 - s) w[y] n[y] + s / C sum over c of w[c] n[c]. Here n is -log p, s the smoothing, and w are the weights.
/// "none" gives it the shape of the labels. Positions whose label is `ignore_index` have the loss 0 and the gradient 0.
/// Where a logit of theirs is NaN or +infinity, that gradient is NaN, as PyTorch's.
/// "mean" divides by the sum of w[y] over the others, which is NaN where there are none (see MeanOfCounted). An
/// `ignore_index` outside the labels' type leaves nothing out.
///
/// Or labels are probabilities, floating like the logits. A position with label q has the loss -sum over c of
/// w[c] t[c] log p[c], where t = (1 - s) q + s / C. Then "mean" divides by the number of positions. `ignore_index` has
/// no meaning.
///
/// A label out of range gives NaN. Where labels are an input of the step, and the reduction is not "none", running the
/// step fails with its row and label. Errors: other shapes or types; weights that are not C; a smoothing outside [0,
/// 1].
class CrossEntropyLoss : public LossBase {
 public:
  MPC_CELL(CrossEntropyLoss)
  explicit CrossEntropyLoss(const CrossEntropyLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& logits, const Tensor& labels);

 private:
  CrossEntropyLossOptions options_;
};

struct NLLLossOptions {
  Tensor weight = {};                ///< one factor a class, floating [C]; undefined: 1 for each
  std::int64_t ignore_index = -100;  ///< positions with this label are left out; it may lie outside the classes
  std::string reduction = "mean";    ///< none, mean, sum
};

/// -w[y] x[y] for log-probabilities x, floating [N, C, d1, ...], and labels y, integers [N, d1, ...]: CrossEntropyLoss
/// behind log_softmax. Ignored positions, "mean", labels out of range and errors are those of CrossEntropyLoss. A
/// log-probability of -infinity counts only where it is the label's. Names and defaults are MindSpore's.
class NLLLoss : public LossBase {
 public:
  MPC_CELL(NLLLoss)
  explicit NLLLoss(const NLLLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& log_probabilities, const Tensor& labels);

 private:
  NLLLossOptions options_;
};

struct FocalLossOptions {
  Tensor weight = {};              ///< one factor a class, floating [C]; undefined: 1 for each
  double gamma = 2;                ///< >= 0; 0 is cross-entropy
  std::string reduction = "mean";  ///< none, mean, sum
};

/// -w[y] (1 - p[y])^gamma log p[y] for p = softmax(logits) over axis 1 (Lin et al., "Focal Loss for Dense Object
/// Detection", 2017). Logits: floating [N, C, d1, ...]. Names and defaults are MindSpore's.
///
/// Labels are class indices, integers [N, d1, ...] or, as in MindSpore, [N, 1, d1, ...]. Then "none" gives [N], the
/// mean over the positions of a sample. Or labels are floating like the logits. Each class c then has the loss of label
/// c times its label, and "none" gives [N, C], the mean over positions. "mean" and "sum" are of these values, so that
/// "mean" divides by C too for floating labels, as in MindSpore. Labels out of range and errors are those of
/// CrossEntropyLoss.
class FocalLoss : public LossBase {
 public:
  MPC_CELL(FocalLoss)
  explicit FocalLoss(const FocalLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& logits, const Tensor& labels);

 private:
  FocalLossOptions options_;
};

struct L1LossOptions {
  std::string reduction = "mean";  ///< none, mean, sum
};

/// |prediction - target|; the derivative is 0 where they are equal. The shapes are equal, where MindSpore broadcasts.
/// Names and defaults are MindSpore's.
class L1Loss : public LossBase {
 public:
  MPC_CELL(L1Loss)
  explicit L1Loss(const L1LossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& prediction, const Tensor& target);

 private:
  L1LossOptions options_;
};

struct HuberLossOptions {
  std::string reduction = "mean";  ///< none, mean, sum
  double delta = 1;                ///< > 0, in f32 too
};

/// d^2 / 2 where d = |prediction - target| is below delta, else delta (d - delta / 2). The gradient of NaN is NaN. The
/// shapes are equal, where MindSpore broadcasts. Names and defaults are MindSpore's.
class HuberLoss : public LossBase {
 public:
  MPC_CELL(HuberLoss)
  explicit HuberLoss(const HuberLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& prediction, const Tensor& target);

 private:
  HuberLossOptions options_;
};

struct SmoothL1LossOptions {
  double beta = 1;                 ///< > 0, in f32 too
  std::string reduction = "none";  ///< none, mean, sum
};

/// d^2 / (2 beta) where d = |prediction - target| is below beta, else d - beta / 2: HuberLoss divided by beta. The
/// shapes are equal. Names and defaults are MindSpore's.
class SmoothL1Loss : public LossBase {
 public:
  MPC_CELL(SmoothL1Loss)
  explicit SmoothL1Loss(const SmoothL1LossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& prediction, const Tensor& target);

 private:
  SmoothL1LossOptions options_;
};

struct KLDivLossOptions {
  std::string reduction = "mean";  ///< none, mean, batchmean, sum
};

/// target (log target - x) for log-probabilities x and probabilities of the same shape; 0 where the target is 0 or
/// less, whatever x is. "mean" divides by elements, "batchmean" by extent 0. The target has no gradient. Names and
/// defaults are MindSpore's.
class KLDivLoss : public LossBase {
 public:
  MPC_CELL(KLDivLoss)
  explicit KLDivLoss(const KLDivLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& log_probabilities, const Tensor& target);

 private:
  KLDivLossOptions options_;
};

struct BCELossOptions {
  Tensor weight = {};              ///< factors of the elements, concrete and floating, which broadcast; undefined: 1
  std::string reduction = "mean";  ///< none, mean, sum
};

/// -(t log p + (1 - t) log(1 - p)) for probabilities p in [0, 1] and labels t of the same shape. Logarithms are at
/// least -100, and the derivative is (p - t) / max(p (1 - p), 1e-12), as in PyTorch. The labels have no gradient. A p
/// outside [0, 1] gives NaN. BCEWithLogitsLoss, which takes logits, is more exact. Names and defaults are MindSpore's.
/// Errors: other shapes or types; weights that do not broadcast.
class BCELoss : public LossBase {
 public:
  MPC_CELL(BCELoss)
  explicit BCELoss(const BCELossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& probabilities, const Tensor& labels);

 private:
  BCELossOptions options_;
};

struct DiceLossOptions {
  double smooth = 1e-5;  ///< > 0; added to the divisor
};

/// 1 - 2 sum(p t) / (sum(p^2) + sum(t^2) + smooth) over all elements of probabilities p and labels t of the same shape:
/// a scalar. Names and defaults are MindSpore's.
class DiceLoss : public LossBase {
 public:
  MPC_CELL(DiceLoss)
  explicit DiceLoss(const DiceLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& probabilities, const Tensor& labels);

 private:
  DiceLossOptions options_;
};

struct MSELossOptions {
  std::string reduction = "mean";  ///< none, mean, sum
};

/// (prediction - target)^2.
class MSELoss : public LossBase {
 public:
  MPC_CELL(MSELoss)
  explicit MSELoss(const MSELossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& prediction, const Tensor& target) {
    return mse(prediction, target, options_.reduction);
  }

 private:
  MSELossOptions options_;
};

struct BCEWithLogitsLossOptions {
  std::string reduction = "mean";  ///< none, mean, sum
  Tensor weight = {};              ///< factors of the elements, concrete and floating, which broadcast; undefined: 1
  Tensor pos_weight = {};          ///< factors of the labels' term, as `weight`; mostly one a class; undefined: 1
};

/// Binary cross-entropy of sigmoid(logits) against labels of the same shape in [0, 1]. With weights it is
/// -w (p t log s + (1 - t) log(1 - s)) for s = sigmoid(logits), labels t, weights w and pos_weight p (PyTorch's
/// formula). An infinite logit on the side of a label of 0 or 1 gives 0 there too. The labels have no gradient. Names
/// and defaults are MindSpore's. Errors: other shapes or types; weights that do not broadcast.
class BCEWithLogitsLoss : public LossBase {
 public:
  MPC_CELL(BCEWithLogitsLoss)
  explicit BCEWithLogitsLoss(const BCEWithLogitsLossOptions& options = {}) : options_(options) {}
  Tensor Construct(const Tensor& logits, const Tensor& labels);

 private:
  BCEWithLogitsLossOptions options_;
};

}  // namespace mpc::nn
