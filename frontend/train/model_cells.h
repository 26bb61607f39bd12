// The Cells that a Model runs, and the optimizer. Not part of the public API.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "frontend/data/dataset.h"
#include "frontend/graph/loss_scale.h"
#include "frontend/graph/step_options.h"
#include "frontend/nn/optimizer.h"
#include "frontend/nn/train_step.h"

namespace mpc::internal {

/// What a Model was given: network, loss and optimizer, or a training step of the user's own. And what it makes of
/// them: its own training step, and the network with its loss. Functions of these Cells hold as long as this object.
class ModelCells {
 public:
  /// `loss` may be undefined, `optimizer` null.
  ModelCells(nn::CellFunction network, nn::CellFunction loss, nn::Optimizer* optimizer);
  ModelCells(const ModelCells&) = delete;
  ModelCells& operator=(const ModelCells&) = delete;

  /// Makes the Model's own step of network, loss and optimizer.
  void BuildStep(const nn::GradientClip& clip);
  /// Takes the user's `cell` for the training step; `step` runs it. Where it names what it predicts with, that is the
  /// network from now on. Errors (INVALID_ARGUMENT): there is a loss, and it names nothing.
  absl::Status UseStep(nn::CellFunction step, nn::TrainingStep& cell);
  /// The Cells that an AMP level acts in, where not the network alone.
  void SetPrecisionNetworks(std::vector<const nn::Cell*> networks) { precision_networks_ = std::move(networks); }

  nn::Cell* network() const { return network_.cell(); }
  bool has_loss() const { return loss_.defined(); }
  nn::Cell* loss() const { return loss_.cell(); }
  /// The training step; null: this Model cannot train.
  nn::Cell* step() const { return step_.defined() ? step_.cell() : nullptr; }
  int step_arity() const { return step_.arity(); }
  /// The number of a network's inputs; below 0: any.
  int network_arity() const { return network_.arity(); }
  /// The step, where the user gave it; else null.
  nn::TrainingStep* user_step() const { return user_step_; }
  /// The step, where the Model made it; else null.
  const nn::TrainOneStepCell* own_step() const { return own_step_.get(); }
  /// The optimizer that the Model was given; null: none.
  nn::Optimizer* optimizer() const { return optimizer_; }
  /// The optimizers that are known before a step is traced.
  std::vector<nn::Optimizer*> optimizers() const;
  /// Their types, with a comma in between.
  std::string NamesOfOptimizers() const;
  const std::vector<const nn::Cell*>& precision_networks() const { return precision_networks_; }

  /// The network, with the loss where there is one: what Eval runs. The loss may have Parameters and statistics.
  nn::Cell* evaluated() const { return with_loss_ != nullptr ? with_loss_.get() : network_.cell(); }
  /// The Cell whose paths name the Parameters.
  nn::Cell* root() const { return user_step_ != nullptr ? user_step_ : evaluated(); }
  /// The Cell that this Model was given: a step of the user's own, else the network.
  const nn::Cell& given() const { return user_step_ != nullptr ? *user_step_ : *network_.cell(); }

  /// The outputs of the training step, on all columns.
  TensorFunction StepFunction() const;
  /// The predictions of the network.
  TensorFunction NetworkFunction() const;
  /// Columns to loss and predictions.
  TensorFunction EvalFunction() const;

  /// Errors (INVALID_ARGUMENT): network and loss have different Parameters of one name.
  absl::Status CheckNames() const;
  /// Errors (FAILED_PRECONDITION): a step of the user's own that does not name what it predicts with.
  absl::Status CheckPredicts() const;
  /// Errors: a parameter without an optimizer, an optimizer that does not fit `scaling`.
  absl::Status CheckTrainable(const LossScaleConfig& scaling) const;
  /// Errors: those of `dataset`; columns that the step does not take.
  absl::Status CheckTrainingColumns(const data::Dataset& dataset) const;
  /// Errors: those of `dataset`; columns that the network and the loss do not take.
  absl::Status CheckEvaluationColumns(const data::Dataset& dataset) const;

 private:
  nn::CellFunction network_;
  nn::CellFunction loss_;
  nn::CellFunction step_;
  nn::TrainingStep* user_step_ = nullptr;
  nn::Optimizer* optimizer_;
  std::vector<const nn::Cell*> precision_networks_;
  std::unique_ptr<nn::WithLossCell> with_loss_;  ///< network and loss, where there is a loss
  std::unique_ptr<nn::TrainOneStepCell> own_step_;
};

}  // namespace mpc::internal
