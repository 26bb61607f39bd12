#include "frontend/train/model_cells.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::internal {
namespace {

/// Errors: those of `dataset`; columns that are not `arity` many, which below 0 is any number.
absl::Status CheckColumns(const data::Dataset& dataset, int arity, const char* what) {
  if (!dataset.status().ok()) return dataset.status();
  const auto columns = static_cast<int>(dataset.column_names().size());
  if (arity < 0 || columns == arity) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " takes ", arity, " columns, the data set has ", columns, " (",
                                                 absl::StrJoin(dataset.column_names(), ", "), ")"));
}

}  // namespace

ModelCells::ModelCells(nn::CellFunction network, nn::CellFunction loss, nn::Optimizer* optimizer)
    : network_(std::move(network)), loss_(std::move(loss)), optimizer_(optimizer) {
  precision_networks_ = {network_.cell()};
  if (loss_.defined()) with_loss_ = std::make_unique<nn::WithLossCell>(network_, loss_);
}

void ModelCells::BuildStep(const nn::GradientClip& clip) {
  own_step_ = std::make_unique<nn::TrainOneStepCell>(*with_loss_, *optimizer_);
  own_step_->set_gradient_clip(clip);
  step_ = nn::CellFunction(*own_step_);
}

absl::Status ModelCells::UseStep(nn::CellFunction step, nn::TrainingStep& cell) {
  step_ = std::move(step);
  user_step_ = &cell;
  // Prediction runs what the step trains.
  if (nn::CellFunction predicted = cell.predicted_network(); predicted.defined()) {
    network_ = predicted;
    if (loss_.defined()) with_loss_ = std::make_unique<nn::WithLossCell>(network_, loss_);
  } else if (loss_.defined()) {
    return absl::InvalidArgumentError(absl::StrCat("Model: a loss is given to evaluate ", cell.TypeName(),
                                                   " with, which does not say what it predicts with; "
                                                   "override predicted_network()"));
  }
  return absl::OkStatus();
}

std::vector<nn::Optimizer*> ModelCells::optimizers() const {
  if (user_step_ != nullptr) return user_step_->optimizers();
  return optimizer_ != nullptr ? std::vector<nn::Optimizer*>{optimizer_} : std::vector<nn::Optimizer*>{};
}

std::string ModelCells::NamesOfOptimizers() const {
  std::vector<std::string> names;
  for (const nn::Optimizer* each : optimizers()) names.push_back(each->TypeName());
  return absl::StrJoin(names, ",");
}

TensorFunction ModelCells::StepFunction() const {
  return [this](const std::vector<Tensor>& columns) { return step_.Flat(columns); };
}

TensorFunction ModelCells::NetworkFunction() const {
  return [this](const std::vector<Tensor>& inputs) { return network_.Flat(inputs); };
}

TensorFunction ModelCells::EvalFunction() const {
  return [this](const std::vector<Tensor>& columns) {
    const std::vector<Tensor> data(columns.begin(), columns.end() - 1);
    const std::vector<Tensor> predictions = network_.Flat(data);
    std::vector<Tensor> for_loss = predictions;
    for_loss.push_back(columns.back());
    return std::vector<Tensor>{loss_.Flat(for_loss).at(0), predictions.front()};
  };
}

absl::Status ModelCells::CheckNames() const {
  std::set<std::string> names;
  for (const auto& [name, parameter] : evaluated()->ParametersAndNames()) {
    if (names.insert(name).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("Model: ", network_.cell()->TypeName(), " and ",
                                                   loss_.cell()->TypeName(), " both have a Parameter '", name,
                                                   "'; give the member of one of them another name"));
  }
  return absl::OkStatus();
}

absl::Status ModelCells::CheckPredicts() const {
  // Without predicted_network() the network is the step itself, which would train.
  if (user_step_ == nullptr || network_.cell() != user_step_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("Predict: the training step ", user_step_->TypeName(),
                                                    " does not say what it predicts with; override "
                                                    "predicted_network() in it"));
}

absl::Status ModelCells::CheckTrainable(const LossScaleConfig& scaling) const {
  if (!optimizer_->status().ok()) return optimizer_->status();
  std::vector<std::string> unowned;
  const std::vector<Parameter>& owned = optimizer_->parameters();
  const auto registered = evaluated()->ParametersAndNames();
  for (const Parameter& parameter : owned) {
    const bool known =
        std::any_of(registered.begin(), registered.end(), [&](const auto& named) { return named.second == parameter; });
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat("the optimizer holds a parameter ",
                                                     parameter.entry()->spec().ToString(), " that ",
                                                     network_.cell()->TypeName(), " does not have"));
    }
  }
  for (const auto& [name, parameter] : registered) {
    if (parameter.requires_grad() && std::find(owned.begin(), owned.end(), parameter) == owned.end()) {
      unowned.push_back(name);
    }
  }
  if (!unowned.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("no optimizer updates ", absl::StrJoin(unowned, ", "),
                                                   "; give them to the optimizer, or freeze them with "
                                                   "SetRequiresGrad(path, false)"));
  }
  return optimizer_->CheckLossScale(scaling);
}

absl::Status ModelCells::CheckTrainingColumns(const data::Dataset& dataset) const {
  const bool own = own_step_ != nullptr;
  const int arity = own && network_.arity() >= 0 ? network_.arity() + 1 : step_.arity();
  return CheckColumns(dataset, arity, own ? "training (the network's inputs and a label)" : "the training step");
}

absl::Status ModelCells::CheckEvaluationColumns(const data::Dataset& dataset) const {
  const int arity = network_.arity() >= 0 ? network_.arity() + 1 : -1;
  return CheckColumns(dataset, arity, "evaluation (the network's inputs and a label)");
}

}  // namespace mpc::internal
