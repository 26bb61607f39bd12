// A traced step: its graph, and what the trace says beside it. Not part of the public API.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/driver/compiler.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/identity.h"
#include "frontend/graph/loss_scale.h"
#include "frontend/graph/step_options.h"
#include "frontend/graph/trace.h"

namespace mpc::internal {

/// What a trace says about a step beside its graph.
struct StepFacts {
  std::size_t num_outputs = 0;  ///< number of outputs that `function` returned
  /// A scaler that the step calls itself (AmpScaler, GradScaler, amp::ScaleLoss), with the parameters of its finite
  /// checks. Record "first_bad" is an index into the list of a single check. With several checks, records "check.0",
  /// "check.1", ... are indices into their lists. The records of several scalers have suffixes: "first_bad0",
  /// "check0.1", ...
  struct Scaler {
    std::shared_ptr<const LossScaler> scaler;
    std::vector<std::vector<std::string>> checked;
    int updates = 0;  ///< how often its state moves in the step
  };
  std::vector<Scaler> scalers;  ///< in order of first use
  /// The groups of the optimizers that the step calls, "SGD group 0", with the state of their learning rates. It is
  /// undefined where a schedule computes the rate.
  std::vector<std::pair<std::string, Parameter>> rates;
  std::vector<LabelInput> labels;  ///< inputs that are class indices
  bool wrapped = false;            ///< scaled by StepOptions::scaler; known once the step is compiled
  /// The Cells, optimizers and scalers that the step was traced from. Those that the trace itself has made are left
  /// out.
  std::vector<Identity::Mark> parts;

  /// False once one of `parts` has been assigned to or destroyed: a trace would find another step.
  bool PartsAreThere() const;
};

/// Whether a step of `root` with these facts and this state is what a trace would find today. Its parts are there, and
/// the Parameters and statistics of `state` are those of `root`.
bool IsCurrent(const StepFacts& facts, absl::Span<const Parameter> state, nn::Cell* root);

/// Traces `function` on inputs of the given types. `root` names the Parameters. `used` receives the state of the step.
/// The module also holds `@init_state` for the Parameters of `root`.
absl::StatusOr<compiler::Module> TraceStep(nn::Cell* root, const TensorFunction& function,
                                           const std::vector<TensorSpec>& inputs, const StepOptions& options,
                                           std::vector<Parameter>* used, StepFacts* facts = nullptr);

/// The types of `tensors`.
std::vector<TensorSpec> SpecsOf(const std::vector<Tensor>& tensors);

}  // namespace mpc::internal
