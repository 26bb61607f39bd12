// Training steps as Cells: forward, gradient, optimizer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/graph/cell.h"
#include "frontend/graph/loss_scale.h"
#include "frontend/graph/ops.h"
#include "frontend/nn/clip.h"
#include "frontend/nn/grad_reducer.h"
#include "frontend/nn/optimizer.h"

namespace mpc::nn {

/// Network and loss as one Cell: (data..., label) -> loss. It adds nothing to Parameter paths.
class WithLossCell : public Cell {
 public:
  MPC_CELL(WithLossCell)
  template <CellType Network, CellType Loss>
  WithLossCell(Network& network, Loss& loss) : network_(network), loss_(loss) {}
  WithLossCell(CellFunction network, CellFunction loss) : network_(std::move(network)), loss_(std::move(loss)) {}

  Tensor Construct(const std::vector<Tensor>& inputs);
  bool transparent() const override { return true; }
  void VisitMembers(internal::MemberVisitor& visitor) override;
  const CellFunction& network() const { return network_; }
  const CellFunction& loss() const { return loss_; }

 private:
  CellFunction network_;
  CellFunction loss_;
};

/// Base of training steps: Cells whose `Construct` computes losses and their gradients and calls optimizers. Networks
/// are members, named in MPC_CELL, and may be references; optimizers and scalers are plain members or references:
///
///     class Step : public mpc::nn::TrainingStep {
///      public:
///       MPC_CELL(Step, network)
///       Step(Network& network, mpc::nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}
///
///       mpc::Tensor Construct(mpc::Tensor x, mpc::Tensor label) {
///         mpc::Tensor loss = softmax_cross_entropy(network(x), label);
///         mpc::Tensor scaled = scaler.Scale(loss);
///         scaler.Minimize(optimizer, ops::Backward(scaled, optimizer.parameters()));
///         return loss;
///       }
///
///       Network& network;
///       mpc::nn::Optimizer& optimizer;
///       mpc::amp::AmpScaler scaler;
///     };
///
/// Called directly it trains one step; `Model(step)` trains over a data set, whose columns are the inputs. Call
/// SetTrain() before a direct call. Without it a Cell that asks whether it trains, such as dropout, makes the call an
/// error.
class TrainingStep : public Cell {
 public:
  /// A single network keeps its own paths ("conv1.weight"); those of several begin with the member's name.
  bool transparent() const override;
  bool is_training_step() const override { return true; }
  /// AMP levels act in the member Cells that are no losses; a loss Cell inside them excludes itself.
  void ConfigureStep(mpc::internal::StepOptions& options) override;
  /// The network that a Model predicts with; undefined if it cannot predict.
  virtual CellFunction predicted_network() const { return {}; }
  /// The optimizers, where the step can name them before it is traced: their state is known from the start.
  virtual std::vector<Optimizer*> optimizers() const { return {}; }

 protected:
  /// For ConfigureStep: names the state of optimizers() in that order.
  void NameOptimizers(mpc::internal::StepOptions& options) const;
};

/// One training step: computes the loss of `network` on the inputs and its gradients with cotangent `sens`, then calls
/// the optimizer. Nothing divides by `sens`. Subclasses replace it by a `Construct` of their own and use the protected
/// members. Neither network nor optimizer is owned.
class TrainOneStepCell : public TrainingStep {
 public:
  MPC_CELL(TrainOneStepCell)
  template <typename Network>
  TrainOneStepCell(Network& network, Optimizer& optimizer, double sens = 1.0)
      : network(network),
        optimizer(optimizer),
        weights(optimizer.parameters()),
        sens(sens),
        weights_of_optimizer_(weights) {}

  Tensor Construct(const std::vector<Tensor>& inputs);
  bool transparent() const override { return true; }
  void VisitMembers(internal::MemberVisitor& visitor) override;
  void ConfigureStep(mpc::internal::StepOptions& options) override;
  /// `network`, without the loss where that is a Cell of its own.
  CellFunction predicted_network() const override;
  std::vector<Optimizer*> optimizers() const override { return {&optimizer}; }
  const CellFunction& trained_network() const { return network; }
  Optimizer& trained_by() const { return optimizer; }
  /// Clips unscaled gradients; a `Construct` of a subclass clips its own.
  void set_gradient_clip(const GradientClip& clip) { gradient_clip_ = clip; }

 protected:
  /// The gradients of `network` by `weights`: `grad(inputs..., sens)`; the last tensor is the cotangent.
  template <typename... Args>
  std::vector<Tensor> grad(const Args&... inputs_and_sens) {
    std::vector<Tensor> tensors;
    (internal::AppendInput(inputs_and_sens, tensors), ...);
    return GradWithSens(std::move(tensors));
  }
  /// The means of `gradients` over processes, where SetAutoParallelContext asks for kDataParallel; else `gradients`.
  /// In data parallel a step averages its gradients by itself, as DistributedGradReducer says. So a `Construct` need
  /// not call this. One that does, as MindSpore's do, averages them once.
  std::vector<Tensor> grad_reducer(std::vector<Tensor> gradients) const;

  CellFunction network;
  Optimizer& optimizer;
  std::vector<Parameter> weights;
  double sens;

 private:
  std::vector<Tensor> GradWithSens(std::vector<Tensor> tensors);
  /// Takes the parameters of the optimizer for `weights` where another one has been assigned to it. A subclass may have
  /// chosen weights of its own, which stay.
  void FollowOptimizer();

  std::vector<Parameter> weights_of_optimizer_;  ///< what `weights` began with
  GradientClip gradient_clip_;
};

/// A training step with loss scale: the seed is the scale, gradients are unscaled, a step that is not finite is
/// skipped.
class TrainOneStepWithLossScaleCell : public TrainOneStepCell {
 public:
  MPC_CELL(TrainOneStepWithLossScaleCell)
  template <typename Network>
  TrainOneStepWithLossScaleCell(Network& network, Optimizer& optimizer, const LossScaleManager& manager)
      : TrainOneStepCell(network, optimizer), scaler_(std::make_shared<LossScaler>(manager.config())) {}

  Tensor Construct(const std::vector<Tensor>& inputs);
  void ConfigureStep(mpc::internal::StepOptions& options) override;
  /// Scale and counters after the last step.
  const LossScaler& scaler() const { return *scaler_; }

 private:
  std::shared_ptr<LossScaler> scaler_;
};

}  // namespace mpc::nn
