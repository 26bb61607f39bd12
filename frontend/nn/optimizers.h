// The optimizers. Those with an operation of the same name have their formulas in docs/dialect.md, the others here.
#pragma once

#include <string>
#include <vector>

#include "frontend/nn/optimizer.h"

namespace mpc::nn {

// `skip_decay_of_norms` of every optimizer is MindSpore's habit: parameters with "beta" or "gamma" in their names get
// no weight decay. It acts on ungrouped parameters only; a group's weight decay is what it says.
//
// Adam, AdamW, Lamb and the dampening of SGD count the steps of the optimizer, as MindSpore does. PyTorch counts those
// of each parameter. So the late steps of a parameter that was frozen at first find no bias to correct, and its first
// gradient is dampened. With the default betas its first updates by Adam and AdamW are up to 6.6 times as large as
// those by a new optimizer. Make a new optimizer, and a new Model of it, when such a parameter is no longer frozen.

struct SGDOptions {
  LearningRate learning_rate = 0.1;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  double loss_scale = 1.0;
  bool skip_decay_of_norms = false;
};

/// PyTorch's SGD; see mpc.sgd. The first step of the optimizer is not dampened.
class SGD : public Optimizer {
 public:
  explicit SGD(const ParameterGroups& parameters, const SGDOptions& options = {});
  std::string TypeName() const override { return "SGD"; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  SGDOptions options_;
};

struct MomentumOptions {
  LearningRate learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0.0;
  double loss_scale = 1.0;
  bool use_nesterov = false;
  bool skip_decay_of_norms = false;
};

/// v = momentum v + g; p -= lr v; see mpc.momentum.
class Momentum : public Optimizer {
 public:
  explicit Momentum(const ParameterGroups& parameters, const MomentumOptions& options = {});
  std::string TypeName() const override { return "Momentum"; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  MomentumOptions options_;
};

struct AdamOptions {
  LearningRate learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;  ///< coupled: added to the gradient
  double loss_scale = 1.0;
  bool skip_decay_of_norms = false;
};

/// See mpc.adam. Bias is corrected by the optimizer's step, for a parameter that was frozen until then, too.
class Adam : public Optimizer {
 public:
  explicit Adam(const ParameterGroups& parameters, const AdamOptions& options = {});
  std::string TypeName() const override { return "Adam"; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  AdamOptions options_;
};

struct AdamWeightDecayOptions {
  LearningRate learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0.0;  ///< decoupled
  bool skip_decay_of_norms = false;
};

/// No bias correction and no `loss_scale`; see mpc.adam_weight_decay.
class AdamWeightDecay : public Optimizer {
 public:
  explicit AdamWeightDecay(const ParameterGroups& parameters, const AdamWeightDecayOptions& options = {});
  std::string TypeName() const override { return "AdamWeightDecay"; }
  bool divides_by_loss_scale() const override { return false; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  AdamWeightDecayOptions options_;
};

struct AdamWOptions {
  LearningRate learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< decoupled
  double loss_scale = 1.0;
  bool skip_decay_of_norms = false;
};

/// PyTorch's AdamW: decoupled weight decay, bias correction; see mpc.adamw. Bias is corrected by the optimizer's step,
/// for a parameter that was frozen until then, too.
class AdamW : public Optimizer {
 public:
  explicit AdamW(const ParameterGroups& parameters, const AdamWOptions& options = {});
  std::string TypeName() const override { return "AdamW"; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  AdamWOptions options_;
};

struct LambOptions {
  LearningRate learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0.0;
  double loss_scale = 1.0;
  bool skip_decay_of_norms = false;
};

/// Layer-wise adaptive moments, with bias correction and a trust ratio in [0, 10]; see mpc.lamb. Bias is corrected by
/// the optimizer's step, for a parameter that was frozen until then, too.
class Lamb : public Optimizer {
 public:
  explicit Lamb(const ParameterGroups& parameters, const LambOptions& options = {});
  std::string TypeName() const override { return "Lamb"; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  LambOptions options_;
};

struct RMSPropOptions {
  LearningRate learning_rate = 0.1;
  double decay = 0.9;  ///< share of the old averages, in [0, 1]
  double momentum = 0.0;
  double epsilon = 1e-10;
  bool centered = false;  ///< divides by the deviation of the gradient, not by its root mean square
  double loss_scale = 1.0;
  double weight_decay = 0.0;  ///< coupled: added to the gradient
  bool skip_decay_of_norms = false;
};

/// MindSpore's RMSProp (Tieleman and Hinton 2012, lecture 6.5 of "Neural networks for machine learning"). With
/// g = gradient / loss_scale + weight_decay * p:
///
///     s = decay * s + (1 - decay) * g^2;
///     m = momentum * m + learning_rate * g / sqrt(s + epsilon);
///     p = p - m;
///
/// and for `centered`
///
///     a = decay * a + (1 - decay) * g;
///     m = momentum * m + learning_rate * g / sqrt(s - a^2 + epsilon);
///
/// Where rounding makes s - a^2 negative, it counts as 0. The slots are mean_square, moment and mean_grad. They start
/// from 1, 0 and 0.
class RMSProp : public Optimizer {
 public:
  explicit RMSProp(const ParameterGroups& parameters, const RMSPropOptions& options = {});
  std::string TypeName() const override { return "RMSProp"; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  RMSPropOptions options_;
};

struct LionOptions {
  LearningRate learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;  ///< decoupled
  double loss_scale = 1.0;
  bool skip_decay_of_norms = false;
};

/// Lion (Chen et al. 2023, "Symbolic discovery of optimization algorithms"). MindSpore has none; the defaults are the
/// paper's. With g = gradient / loss_scale, and sign(0) = 0:
///
///     p = p - learning_rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p)
///     m = beta2 * m + (1 - beta2) * g            m is 0 at first; the slot is moment
class Lion : public Optimizer {
 public:
  explicit Lion(const ParameterGroups& parameters, const LionOptions& options = {});
  std::string TypeName() const override { return "Lion"; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  LionOptions options_;
};

struct AdagradOptions {
  double accum = 0.1;  ///< what the sums of squares start from, >= 0
  LearningRate learning_rate = 1e-3;
  bool update_slots = true;  ///< false: the sums stay `accum`
  double loss_scale = 1.0;
  double weight_decay = 0.0;  ///< coupled: added to the gradient
  bool skip_decay_of_norms = false;
};

/// MindSpore's Adagrad (Duchi, Hazan and Singer 2011, "Adaptive subgradient methods for online learning and stochastic
/// optimization"). With g = gradient / loss_scale + weight_decay * p:
///
///     h = h + g^2                                h is `accum` at first; the slot is accum
///     p = p - learning_rate * g / sqrt(h)        where h and g are 0, p stays
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(const ParameterGroups& parameters, const AdagradOptions& options = {});
  std::string TypeName() const override { return "Adagrad"; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  AdagradOptions options_;
};

}  // namespace mpc::nn
