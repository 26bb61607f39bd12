// What a Model owns. Not part of the public API.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/compiled_step.h"
#include "frontend/context.h"
#include "frontend/model.h"

namespace mpc {

struct Model::Impl {
  absl::Status status;
  nn::CellFunction network;
  nn::CellFunction loss;
  nn::CellFunction step;                      ///< the training step; undefined: this Model cannot train
  nn::TrainOneStepCell* user_step = nullptr;  ///< `step`, where the user gave it
  nn::Optimizer* optimizer = nullptr;
  ModelOptions options;
  amp::Precision precision;
  LossScaleConfig scale_config;
  std::unique_ptr<LossScaler> scaler;
  internal::RngState rng;
  std::vector<const nn::Cell*> networks;

  std::unique_ptr<nn::WithLossCell> with_loss;  ///< of a Model of network, loss and optimizer
  std::unique_ptr<nn::TrainOneStepCell> own_step;

  std::map<std::string, std::unique_ptr<internal::CompiledStep>> programs;
  std::vector<const compiler::CompileResult*> compiled;
  std::int64_t global_step = 0;
  std::int64_t epochs_done = 0;
  bool in_overflow_run = false;
  bool warned_about_nan = false;

  std::string device() const { return options.device.empty() ? GetContext().device : options.device; }

  /// What every Program of this Model compiles with.
  internal::StepOptions CommonOptions(const char* name) const;
  internal::StepOptions TrainOptions(const std::vector<std::string>& columns) const;
  /// The Program of `function` for these inputs.
  absl::StatusOr<internal::CompiledStep*> Program(nn::Cell* root, const internal::TensorFunction& function,
                                                  const std::vector<Tensor>& inputs,
                                                  const internal::StepOptions& step_options);
  /// Columns to loss and predictions.
  internal::TensorFunction EvalFunction() const;

  /// The Cell whose paths name the Parameters.
  nn::Cell* root() const { return user_step != nullptr ? user_step : network.cell(); }

  /// The scaler that acts: the Model's, or that of a step of the user's own. Null: none.
  const LossScaler* ActiveScaler() const {
    const auto* own = dynamic_cast<const nn::TrainOneStepWithLossScaleCell*>(user_step);
    return own != nullptr ? &own->scaler() : scaler.get();
  }

  /// Errors: a parameter without an optimizer, an optimizer that does not fit the loss scale.
  absl::Status CheckTrainable() const;
  absl::Status CheckColumns(const data::Dataset& dataset, int arity, const char* what) const;
  /// Counts the step and reports overflow. Errors: too many skips in a row.
  absl::Status AfterStep(const internal::CompiledStep& step_run, RunContext& context);
  /// The parameter whose gradient has this position.
  std::string GradientName(std::int64_t index) const;
};

}  // namespace mpc
