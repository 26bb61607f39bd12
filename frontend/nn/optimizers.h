// The optimizers. Formulas: docs/dialect.md, at the operation of the same name.
#pragma once

#include <string>
#include <vector>

#include "frontend/nn/optimizer.h"

namespace mpc::nn {

// `skip_decay_of_norms` of every optimizer is MindSpore's habit: parameters with "beta" or "gamma" in their names get
// no weight decay. It acts on ungrouped parameters only; a group's weight decay is what it says.

struct SGDOptions {
  LearningRate learning_rate = 0.1;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  double loss_scale = 1.0;
  bool skip_decay_of_norms = false;
};

/// PyTorch's SGD; see mpc.sgd.
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

/// See mpc.adam.
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

/// PyTorch's AdamW: decoupled weight decay, bias correction; see mpc.adamw.
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

/// Layer-wise adaptive moments, with bias correction and a trust ratio in [0, 10]; see mpc.lamb.
class Lamb : public Optimizer {
 public:
  explicit Lamb(const ParameterGroups& parameters, const LambOptions& options = {});
  std::string TypeName() const override { return "Lamb"; }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;

 private:
  LambOptions options_;
};

}  // namespace mpc::nn
