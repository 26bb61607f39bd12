// apex.amp: Initialize, ScaleLoss, state dicts.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/amp/explicit_scaler.h"
#include "frontend/graph/amp_options.h"
#include "frontend/graph/cell.h"
#include "frontend/nn/optimizer.h"

namespace mpc::amp {

/// One Cell, or `{generator, discriminator}`.
class CellList {
 public:
  CellList(nn::Cell& cell) : cells_{&cell} {}  // NOLINT: an argument list
  CellList(std::initializer_list<std::reference_wrapper<nn::Cell>> cells) {
    for (nn::Cell& cell : cells) cells_.push_back(&cell);
  }
  const std::vector<nn::Cell*>& get() const { return cells_; }

 private:
  std::vector<nn::Cell*> cells_;
};

/// No optimizer, one, or `{opt_g, opt_d}`.
class OptimizerList {
 public:
  OptimizerList() = default;
  OptimizerList(nn::Optimizer& optimizer) : optimizers_{&optimizer} {}  // NOLINT: an argument list
  OptimizerList(std::initializer_list<std::reference_wrapper<nn::Optimizer>> optimizers) {
    for (nn::Optimizer& optimizer : optimizers) optimizers_.push_back(&optimizer);
  }
  const std::vector<nn::Optimizer*>& get() const { return optimizers_; }

 private:
  std::vector<nn::Optimizer*> optimizers_;
};

/// Gives the models the level of `options` (O1 if left out) and the optimizers a loss scaler for each of
/// `options.num_losses` losses. The models, and training steps that hold them, run at that level from now on. A Model
/// that trains such a step needs no level of its own. Models and optimizers are not owned and must outlive their use.
/// If a model or an optimizer is given again, the last call counts. The Parameters are named by the paths of the
/// models. Errors: those of ResolveOptions; the status() of an optimizer.
absl::Status Initialize(const CellList& models, const OptimizerList& optimizers = {}, const Options& options = {});
/// The same without optimizers, for inference.
absl::Status Initialize(const CellList& models, const Options& options);

struct ScaleLossOptions {
  std::int64_t loss_id = 0;  ///< index of the loss scaler, in [0, num_losses)
  /// The gradients of this backward pass stay scaled. A later backward pass for the same optimizer, without delay,
  /// unscales them together with its own.
  bool delay_unscale = false;
  /// Accepted for programs that were written for apex; without effect. The check of every backward pass counts when the
  /// optimizer is called.
  bool delay_overflow_check = false;
};

/// Returns loss * scale in f32, in the Construct of a training step. `optimizers` are those that receive gradients from
/// the result.
///
///     Tensor scaled = amp::ScaleLoss(loss, optimizer);
///     optimizer(ops::Backward(scaled, optimizer.parameters()));
///
/// ops::Backward of a scaled loss returns unscaled gradients, as apex leaves them. An optimizer's update is skipped if
/// a loss given with it, or a gradient of such a loss, is not finite. A static scale of Initialize does not skip. A
/// scaler that several losses share moves once a step.
Tensor ScaleLoss(const Tensor& loss, const OptimizerList& optimizers, const ScaleLossOptions& options = {});

/// The parameters that the optimizer updates: f32 ones, or those stored in the low type with `master_weights = false`.
std::vector<Parameter> MasterParams(const nn::Optimizer& optimizer);

/// The state of each scaler of the last call of Initialize: "loss_scaler0": {"loss_scale", "unskipped"}, ... Empty if
/// that call disabled amp. Errors (FAILED_PRECONDITION): Initialize has not been called.
absl::StatusOr<std::map<std::string, ScalerState>> StateDict();
/// Loads what StateDict returned. Errors: Initialize has not been called; scalers or keys that are missing or unknown,
/// all of which are named; values out of range.
absl::Status LoadStateDict(const std::map<std::string, ScalerState>& state);

/// Parameters and statistics by path. Floating values are f32, whatever type they are stored in.
absl::StatusOr<std::map<std::string, Tensor>> StateDict(nn::Cell& cell);
/// Learning rates, step counter and slots by name. Slots are named after their parameters, and these by the paths of
/// the Cell that named them last. That is the network, once it was given to Initialize or a step has run. Errors
/// (FAILED_PRECONDITION): two entries of one name, as where groups come from `net.fc1.TrainableParams()`.
absl::StatusOr<std::map<std::string, Tensor>> StateDict(nn::Optimizer& optimizer);
/// Loads what StateDict returned for such a Cell. Errors: entries that are missing, unknown or misshapen, all of which
/// are named. Nothing changes then.
absl::Status LoadStateDict(nn::Cell& cell, const std::map<std::string, Tensor>& state);
/// The same for an optimizer, whose place among the optimizers of a step ("optimizer2.") may differ. Call it after
/// Initialize. Errors: those of StateDict too.
absl::Status LoadStateDict(nn::Optimizer& optimizer, const std::map<std::string, Tensor>& state);

}  // namespace mpc::amp
