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
  std::uint64_t id;  ///< number of the call of amp::Initialize
  Options given;
  Precision precision;
  std::vector<std::shared_ptr<LossScaler>> scalers;  ///< one a loss
};

/// The condition of an optimizer's update in this step: all finite checks of its backward passes of amp::ScaleLoss
/// whose scaler skips. Undefined if the update always happens. The trace fails if gradients of the optimizer still wait
/// for a backward pass that unscales them.
Tensor UpdatePredicate(mpc::internal::Trace& trace, const nn::Optimizer& optimizer);

/// What ops::Backward returns instead of `gradients`. After amp::ScaleLoss without delay, these are the unscaled
/// gradients plus those that were delayed before.
std::vector<Tensor> AfterBackward(mpc::internal::Trace& trace, const Tensor& loss,
                                  const std::vector<Parameter>& parameters, std::vector<Tensor> gradients);

/// The session of the Cells below `root`; null where Initialize was given none of them. Errors: two calls of Initialize
/// gave different precisions.
absl::StatusOr<std::shared_ptr<Session>> SessionBelow(nn::Cell& root);

/// Writes the precision of that session, and the Cells that have it, into the options of a step of `root`. Does nothing
/// without a session.
absl::Status ApplySession(nn::Cell& root, mpc::internal::StepOptions& options);

/// Writes `precision` into the options of a step.
void SetPrecision(const Precision& precision, mpc::internal::StepOptions& options);

}  // namespace mpc::amp::internal
