// Optimizers: they turn gradients into new parameter values, as operations of the traced step.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "frontend/parameter.h"
#include "frontend/tensor.h"

namespace mpc::nn {

/// Base of optimizers. Owns its state: learning rate, step counter and slots; copies share it. Errors of construction
/// (no parameters, a parameter given twice, a value out of range) are kept and returned by the first use.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  const absl::Status& status() const { return status_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// What gradients are divided by inside the optimizer (MindSpore's `loss_scale`); 1 where it has none.
  double loss_scale() const { return loss_scale_; }
  /// False for optimizers without a `loss_scale` option.
  virtual bool divides_by_loss_scale() const { return true; }
  virtual std::string TypeName() const = 0;

  /// The next step uses it; no recompile. Errors: a negative or non-finite rate.
  absl::Status SetLearningRate(double learning_rate);
  absl::StatusOr<double> learning_rate() const;
  /// Updates done; skipped steps do not count.
  absl::StatusOr<std::int64_t> step() const;

  /// In a training step: applies `gradients` (in the order of `parameters()`). Returns true, for ops::Depend.
  bool operator()(const std::vector<Tensor>& gradients);

  /// Learning rate, step and slots, named after the parameters.
  std::vector<Parameter> State();

 protected:
  Optimizer(std::vector<Parameter> parameters, double learning_rate, double loss_scale,
            std::vector<std::string> slot_names);

  /// One update of `parameter`: emits the operation and returns the new values of parameter and slots.
  virtual std::vector<Tensor> Update(const Tensor& parameter, const std::vector<Tensor>& slots, const Tensor& gradient,
                                     const Tensor& learning_rate, const Tensor& step) = 0;
  /// Keeps the first error.
  void Reject(const std::string& message);

 private:
  std::vector<Parameter> parameters_;
  std::string prefix_ = "optimizer";  ///< of state names; the second optimizer of a step is "optimizer2"
  Parameter learning_rate_;
  Parameter step_;
  std::vector<std::string> slot_names_;
  std::vector<std::vector<Parameter>> slots_;  ///< by parameter
  double loss_scale_;
  absl::Status status_;
};

struct SGDOptions {
  double learning_rate = 0.1;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  double loss_scale = 1.0;
};

/// PyTorch's SGD; see mpc.sgd.
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Parameter> parameters, const SGDOptions& options = {});
  std::string TypeName() const override { return "SGD"; }

 protected:
  std::vector<Tensor> Update(const Tensor& parameter, const std::vector<Tensor>& slots, const Tensor& gradient,
                             const Tensor& learning_rate, const Tensor& step) override;

 private:
  SGDOptions options_;
};

struct MomentumOptions {
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0.0;
  double loss_scale = 1.0;
  bool use_nesterov = false;
};

/// v = momentum v + g; p -= lr v; see mpc.momentum.
class Momentum : public Optimizer {
 public:
  explicit Momentum(std::vector<Parameter> parameters, const MomentumOptions& options = {});
  std::string TypeName() const override { return "Momentum"; }

 protected:
  std::vector<Tensor> Update(const Tensor& parameter, const std::vector<Tensor>& slots, const Tensor& gradient,
                             const Tensor& learning_rate, const Tensor& step) override;

 private:
  MomentumOptions options_;
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;  ///< coupled: added to the gradient
  double loss_scale = 1.0;
};

/// See mpc.adam.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Parameter> parameters, const AdamOptions& options = {});
  std::string TypeName() const override { return "Adam"; }

 protected:
  std::vector<Tensor> Update(const Tensor& parameter, const std::vector<Tensor>& slots, const Tensor& gradient,
                             const Tensor& learning_rate, const Tensor& step) override;

 private:
  AdamOptions options_;
};

struct AdamWeightDecayOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0.0;  ///< decoupled
};

/// No bias correction and no `loss_scale`; see mpc.adam_weight_decay.
class AdamWeightDecay : public Optimizer {
 public:
  explicit AdamWeightDecay(std::vector<Parameter> parameters, const AdamWeightDecayOptions& options = {});
  std::string TypeName() const override { return "AdamWeightDecay"; }
  bool divides_by_loss_scale() const override { return false; }

 protected:
  std::vector<Tensor> Update(const Tensor& parameter, const std::vector<Tensor>& slots, const Tensor& gradient,
                             const Tensor& learning_rate, const Tensor& step) override;

 private:
  AdamWeightDecayOptions options_;
};

}  // namespace mpc::nn
