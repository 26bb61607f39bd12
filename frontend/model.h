// Training, evaluation and prediction of a network.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "frontend/amp/level.h"
#include "frontend/amp/loss_scale.h"
#include "frontend/callback.h"
#include "frontend/cell.h"
#include "frontend/data/dataset.h"
#include "frontend/metric.h"
#include "frontend/nn/loss.h"
#include "frontend/nn/optimizer.h"
#include "frontend/nn/train_step.h"

namespace mpc {

struct ModelOptions {
  MetricList metrics;                       ///< what Eval measures
  std::string amp_level = "O0";             ///< O0, O2, O3
  std::optional<bool> keep_batchnorm_fp32;  ///< left out: the level's default
  LossScaleChoice loss_scale_manager;       ///< left out: the level's default; nullptr: none; or a manager
  std::optional<DType> amp_dtype;           ///< the low type: f16 (default) or bf16
  std::string device;                       ///< empty: the context's
  /// Errors out after so many skipped steps in a row where the scale cannot shrink any more; 0: never.
  std::int64_t max_consecutive_skips = 20;
};

/// Owns the state of training and the Programs compiled for it. Network, loss and optimizer are not owned and must
/// outlive the Model. Errors of construction are returned by `status()` and by every method.
///
/// Programs are compiled on first use for each batch shape; all share one state, so that the last partial batch, Eval
/// and Predict see what training left.
class Model {
 public:
  /// Training and evaluation. The data set's last column is the label, the others are the network's inputs.
  template <nn::CellType Network, nn::CellType Loss>
  Model(Network& network, Loss& loss, nn::Optimizer& optimizer, ModelOptions options = {})
      : Model(nn::CellFunction(network), nn::CellFunction(loss), &optimizer, std::move(options)) {
    BuildStep();
  }
  /// Evaluation and prediction.
  template <nn::CellType Network, nn::CellType Loss>
  Model(Network& network, Loss& loss, ModelOptions options = {})
      : Model(nn::CellFunction(network), nn::CellFunction(loss), nullptr, std::move(options)) {}
  /// A training step of its own (see nn::TrainOneStepCell), which every column of the data set is an input of; or a
  /// network without a loss, to predict. Predict runs the network that the step trains.
  template <typename Network>
  explicit Model(Network& network, ModelOptions options = {})
      : Model(nn::CellFunction(network), nn::CellFunction(), nullptr, std::move(options)) {
    if constexpr (std::is_base_of_v<nn::TrainOneStepCell, Network>) UseStep(nn::CellFunction(network), network);
  }

  Model(Model&&) noexcept;
  ~Model();

  const absl::Status& status() const;

  /// Trains `epochs` >= 1 epochs. Called again it continues; epoch numbers restart at 1. Errors: no optimizer; a data
  /// set whose columns do not fit; what compiling reports; too many skipped steps in a row. State is that of the last
  /// complete step.
  absl::Status Train(std::int64_t epochs, const data::Dataset& dataset, const CallbackList& callbacks = {});

  /// The metrics over one pass of `dataset`, by name.
  absl::StatusOr<std::map<std::string, double>> Eval(const data::Dataset& dataset);

  /// The network's output(s) in inference mode, f32.
  template <typename... Inputs>
  absl::StatusOr<Tensor> Predict(const Inputs&... inputs) {
    std::vector<Tensor> flat;
    (nn::internal::AppendInput(inputs, flat), ...);
    absl::StatusOr<std::vector<Tensor>> outputs = PredictAll(flat);
    if (!outputs.ok()) return outputs.status();
    return outputs->front();
  }
  absl::StatusOr<std::vector<Tensor>> PredictAll(const std::vector<Tensor>& inputs);

  // What happened.
  std::int64_t global_step() const;    ///< steps run, skipped ones included
  std::int64_t skipped_steps() const;  ///< steps skipped because they were not finite
  double loss_scale() const;           ///< 1 without a scaler
  const LossScaleConfig& loss_scale_config() const;
  const amp::Precision& precision() const;
  /// Every Program compiled so far, in order, with its phases and final IR.
  std::vector<const compiler::CompileResult*> compiled() const;
  /// State and arena of the largest Program: known before the first step runs.
  std::size_t peak_bytes() const;
  /// The state entry called `name` ("conv1.weight", "optimizer.step", "scaler.scale"); undefined if there is none.
  Parameter State(std::string_view name) const;
  /// Every state entry that the Programs share, in canonical order.
  std::vector<Parameter> AllState() const;

  // For tools: the traced module of a step on inputs of these types, before any pass, and what it compiles with.
  absl::StatusOr<compiler::Module> TraceTrainStep(const std::vector<TensorSpec>& columns) const;
  absl::StatusOr<compiler::Module> TracePredict(const std::vector<TensorSpec>& inputs) const;
  compiler::CompileOptions compile_options(bool training) const;

 private:
  struct Impl;
  Model(nn::CellFunction network, nn::CellFunction loss, nn::Optimizer* optimizer, ModelOptions options);
  void BuildStep();
  void UseStep(nn::CellFunction step, nn::TrainOneStepCell& cell);

  std::unique_ptr<Impl> impl_;
};

}  // namespace mpc
