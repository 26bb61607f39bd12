// What amp::Initialize leaves with the Cells and optimizers it was given. Not part of the public API.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/amp_options.h"
#include "frontend/graph/loss_scale.h"
#include "frontend/graph/trace.h"

namespace mpc::nn {
class Cell;
class Optimizer;
}  // namespace mpc::nn

namespace mpc::internal {
struct StepOptions;
}  // namespace mpc::internal

namespace mpc::amp::internal {

struct Session {
  std::uint64_t id;  ///< of the call
  Options given;
  Precision precision;
  std::vector<std::shared_ptr<LossScaler>> scalers;  ///< one a loss
};

/// The condition of an optimizer's update in this step: the checks of every backward pass of amp::ScaleLoss for it
/// whose scaler skips. Undefined: always. An error of the trace: its gradients wait for a backward pass that unscales
/// them.
Tensor UpdatePredicate(mpc::internal::Trace& trace, const nn::Optimizer& optimizer);

/// What ops::Backward returns instead of `gradients`: after amp::ScaleLoss, unless it delays, the unscaled ones, joined
/// by those that were delayed before.
std::vector<Tensor> AfterBackward(mpc::internal::Trace& trace, const Tensor& loss,
                                  const std::vector<Parameter>& parameters, std::vector<Tensor> gradients);

/// The session of the Cells below `root`; null where Initialize was given none of them. Errors: two calls of Initialize
/// gave different precisions.
absl::StatusOr<std::shared_ptr<Session>> SessionBelow(nn::Cell& root);

/// The precision of that session, and the Cells that have it, as options of a step of `root`; nothing without one.
absl::Status ApplySession(nn::Cell& root, mpc::internal::StepOptions& options);

/// `precision` as options of a step.
void SetPrecision(const Precision& precision, mpc::internal::StepOptions& options);

}  // namespace mpc::amp::internal
