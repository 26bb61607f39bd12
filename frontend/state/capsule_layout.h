// What a capsule must hold, as its Programs say. Not part of the public API.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "frontend/state/step_capsule.h"
#include "runtime/program_file.h"

namespace mpc::internal {

using NamedSpecs = std::vector<std::pair<std::string, TensorSpec>>;

/// Both Programs of a capsule, or its one. A package wants a beginning for every entry: it has zeros, and the capsule's
/// own state takes their place.
runtime::Package PackageOf(const StepCapsule& capsule);

/// The state that its Programs bind, each entry once, without derived state. `written`: a Program writes it.
std::vector<runtime::StateBinding> StateOf(const StepCapsule& capsule);
NamedSpecs StateSpecs(const StepCapsule& capsule);
/// Inputs and outputs of each run in turn, under NameInRun.
NamedSpecs InputSpecs(const StepCapsule& capsule);
NamedSpecs OutputSpecs(const StepCapsule& capsule);

/// The tensor called `name`, or null.
const Tensor* FindTensor(const StepCapsule::NamedTensors& tensors, std::string_view name);

/// Errors: numbers of runs and ranks that `tensors` tensors of the batch and the record cannot bear out.
absl::Status CheckRuns(const StepCapsule& capsule, std::size_t tensors);

}  // namespace mpc::internal
