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
/// `options.num_losses` losses. The models, and training steps that hold them, run at that level from now on; a Model
/// that trains such a step needs no level of its own. Models and optimizers are not owned and must outlive their use.
/// Called again for a model or an optimizer, the last call counts. Errors: those of ResolveOptions; an optimizer's own.
absl::Status Initialize(const CellList& models, const OptimizerList& optimizers = {}, const Options& options = {});
/// For inference: no optimizer.
absl::Status Initialize(const CellList& models, const Options& options);

struct ScaleLossOptions {
  std::int64_t loss_id = 0;  ///< in [0, num_losses): which scaler
  /// The gradients of this backward pass stay scaled, until a later one for the same optimizer, which does not delay,
  /// unscales them together with its own.
  bool delay_unscale = false;
  /// apex's: accepted for its programs. The check of every backward pass counts when the optimizer is called.
  bool delay_overflow_check = false;
};

/// In the Construct of a training step: loss * scale, f32. `optimizers` are those that receive gradients from it.
///
///     Tensor scaled = amp::ScaleLoss(loss, optimizer);
///     optimizer(ops::Backward(scaled, optimizer.parameters()));
///
/// ops::Backward of a scaled loss returns unscaled gradients, as apex leaves them. An optimizer is skipped where those
/// of any loss given with it, or that loss, are not finite; a static scale of Initialize does not skip. A scaler that
/// several losses share moves once a step.
Tensor ScaleLoss(const Tensor& loss, const OptimizerList& optimizers, const ScaleLossOptions& options = {});

/// What the optimizer updates: the f32 parameters, or, with `master_weights = false`, those stored low.
std::vector<Parameter> MasterParams(const nn::Optimizer& optimizer);

/// "loss_scaler0": {"loss_scale", "unskipped"}, ... of the last call of Initialize; empty where it disabled amp. Errors
/// (FAILED_PRECONDITION): Initialize has not been called.
absl::StatusOr<std::map<std::string, ScalerState>> StateDict();
/// Errors: Initialize has not been called; scalers or keys that are missing or unknown, all of them; values out of
/// range.
absl::Status LoadStateDict(const std::map<std::string, ScalerState>& state);

/// Parameters and statistics by path, floating ones in f32 whatever they are stored in.
absl::StatusOr<std::map<std::string, Tensor>> StateDict(nn::Cell& cell);
/// Learning rates, step and slots by name.
absl::StatusOr<std::map<std::string, Tensor>> StateDict(nn::Optimizer& optimizer);
/// Loads what StateDict gave of such a Cell. Errors, and then nothing changes: entries that are missing, unknown or
/// misshapen, all of them.
absl::Status LoadStateDict(nn::Cell& cell, const std::map<std::string, Tensor>& state);
/// The same for an optimizer. Its place in a step ("optimizer2.") may be another one. Call it after Initialize.
absl::Status LoadStateDict(nn::Optimizer& optimizer, const std::map<std::string, Tensor>& state);

}  // namespace mpc::amp
