// Optimizers around optimizers: LARS changes the gradients of another one, EMA averages the weights that it makes.
//
// What is wrapped is copied, and copies of optimizers share their state. So its learning rate may be set through
// either. The step calls the wrapper.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "frontend/nn/optimizer.h"

namespace mpc::nn {

struct LARSOptions {
  double epsilon = 1e-5;       ///< added to the divisor, > 0
  double coefficient = 0.001;  ///< how far a step may move a weight, in shares of its norm
  bool use_clip = false;       ///< limits the local rate by the learning rate of the optimizer
  /// The parameters that LARS acts on. Left out: those without "LayerNorm" and "bias" in their names.
  std::function<bool(const Parameter&)> lars_filter;
};

/// MindSpore's LARS (You, Gitman and Ginsburg 2017, "Large batch training of convolutional networks"). It gives the
/// optimizer inside, for each parameter p with gradient g and weight decay d, in place of g and d
///
///     r * (g + d * p) and 0, with r = coefficient * |p| / (|g| + d * |p| + epsilon)
///
/// With `use_clip` r is min(r / learning_rate, 1). Where |p| or |g| is 0, r is 1, so that what starts from 0 moves;
/// MindSpore's documentation does not say what happens there. A parameter that the filter leaves out keeps its gradient
/// and has no weight decay, as in MindSpore. Adam and Lamb inside are errors, also as there.
///
///     nn::LARS opt(nn::Momentum(net.TrainableParams(), {.learning_rate = 1.0, .weight_decay = 1e-4}));
class LARS : public Optimizer {
 public:
  template <std::derived_from<Optimizer> Inner>
  explicit LARS(Inner optimizer, const LARSOptions& options = {})
      : LARS(std::make_shared<Inner>(std::move(optimizer)), options) {}
  std::string TypeName() const override;
  bool divides_by_loss_scale() const override { return inner_->divides_by_loss_scale(); }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;
  void LeaveOut(std::size_t index) override { LeaveOutOf(*inner_, index); }

 private:
  LARS(std::shared_ptr<Optimizer> inner, const LARSOptions& options);

  std::shared_ptr<Optimizer> inner_;
  LARSOptions options_;
};

struct EMAOptions {
  double decay = 0.999;  ///< share of the old average, in [0, 1]
};

/// Does what the optimizer inside does, and keeps an exponential moving average of each weight. Polyak and Juditsky
/// 1992, "Acceleration of stochastic approximation by averaging", take equal shares instead. After each update
///
///     average = decay * average + (1 - decay) * weight
///
/// The average starts from the weight before the first update of this EMA, however often the optimizer inside has
/// updated it before. It holds still on a skipped step. A frozen parameter is its own average. Averages are state: the
/// slot is average, and checkpoints hold it. They are f32, for low parameters too. Running statistics have no average.
/// An EMA inside is an error. MindSpore has no counterpart. AveragedWeights evaluates on the averages.
///
///     nn::EMA opt(nn::Adam(net.TrainableParams()), {.decay = 0.999});
///     Model model(net, loss, opt);
///     absl::Status trained = model.Train(10, train_set);
///     {
///       const nn::AveragedWeights averaged(opt);
///       auto measured = model.Eval(test_set);
///     }
class EMA : public Optimizer {
 public:
  template <std::derived_from<Optimizer> Inner>
  explicit EMA(Inner optimizer, const EMAOptions& options = {})
      : EMA(std::make_shared<Inner>(std::move(optimizer)), options) {}
  std::string TypeName() const override;
  bool divides_by_loss_scale() const override { return inner_->divides_by_loss_scale(); }

  /// The average of `parameters()[index]`. Before the first update it means nothing.
  const Parameter& average(std::size_t index) const { return slots(index).back(); }

 protected:
  std::vector<Tensor> Update(const Operands& operands) override;
  void LeaveOut(std::size_t index) override;

 private:
  friend class AveragedWeights;
  EMA(std::shared_ptr<Optimizer> inner, const EMAOptions& options);

  std::shared_ptr<Optimizer> inner_;
  EMAOptions options_;
  Parameter averaged_;  ///< counts the updates that the averages hold
};

/// While it lives, the weights of an EMA are their averages. Then they are what they were before, bit for bit.
/// Do not train or save checkpoints meanwhile.
class AveragedWeights {
 public:
  explicit AveragedWeights(const EMA& ema);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

  /// Errors: the EMA has made no update yet (FAILED_PRECONDITION), or a value could not be read or written. Then the
  /// weights are as before.
  const absl::Status& status() const { return status_; }
  /// Puts the weights back now. The destructor does nothing more.
  absl::Status Restore();

 private:
  absl::Status Exchange(const EMA& ema);

  std::vector<std::pair<Parameter, Tensor>> weights_;
  absl::Status status_;
};

}  // namespace mpc::nn
