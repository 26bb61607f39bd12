// Training steps as Cells: forward, gradient, optimizer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/amp/loss_scale.h"
#include "frontend/cell.h"
#include "frontend/nn/optimizer.h"
#include "frontend/ops.h"

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

/// One training step: the loss of `network` on the inputs, its gradients with cotangent `sens`, the optimizer's update.
/// Nothing divides by `sens`. Subclasses override it by a `Construct` of their own and use the protected members.
/// Neither network nor optimizer is owned.
class TrainOneStepCell : public Cell {
 public:
  MPC_CELL(TrainOneStepCell)
  template <typename Network>
  TrainOneStepCell(Network& network, Optimizer& optimizer, double sens = 1.0)
      : network(network), optimizer(optimizer), weights(optimizer.parameters()), sens(sens) {}

  Tensor Construct(const std::vector<Tensor>& inputs);
  bool transparent() const override { return true; }
  bool is_training_step() const override { return true; }
  void VisitMembers(internal::MemberVisitor& visitor) override;
  void ConfigureStep(mpc::internal::StepOptions& options) override;
  /// What a Model asks: where the levels act.
  const CellFunction& trained_network() const { return network; }
  Optimizer& trained_by() const { return optimizer; }

 protected:
  /// The gradients of `network` by `weights`: `grad(inputs..., sens)`; the last tensor is the cotangent.
  template <typename... Args>
  std::vector<Tensor> grad(const Args&... inputs_and_sens) {
    std::vector<Tensor> tensors;
    (internal::AppendInput(inputs_and_sens, tensors), ...);
    return GradWithSens(std::move(tensors));
  }
  /// Gradients summed over devices: the identity on one device.
  std::vector<Tensor> grad_reducer(std::vector<Tensor> gradients) const { return gradients; }

  CellFunction network;
  Optimizer& optimizer;
  std::vector<Parameter> weights;
  double sens;

 private:
  std::vector<Tensor> GradWithSens(std::vector<Tensor> tensors);
};

/// A training step with loss scale: the seed is the scale, gradients are unscaled, a step that is not finite is
/// skipped.
class TrainOneStepWithLossScaleCell : public TrainOneStepCell {
 public:
  MPC_CELL(TrainOneStepWithLossScaleCell)
  template <typename Network>
  TrainOneStepWithLossScaleCell(Network& network, Optimizer& optimizer, const LossScaleManager& manager)
      : TrainOneStepCell(network, optimizer), scaler_(std::make_shared<LossScaler>(manager.config())) {}

  Tensor Construct(const std::vector<Tensor>& inputs) { return TrainOneStepCell::Construct(inputs); }
  void ConfigureStep(mpc::internal::StepOptions& options) override;
  /// Scale and counters after the last step.
  const LossScaler& scaler() const { return *scaler_; }

 private:
  std::shared_ptr<LossScaler> scaler_;
};

}  // namespace mpc::nn
