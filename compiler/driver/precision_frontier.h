// The precisions of a traced step between the fastest and the most exact one. Free of MLIR headers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"
#include "compiler/options/compile_options.h"
#include "passes/precision/slot_points.h"

namespace mpc::compiler {
// NOLINTBEGIN(readability-identifier-naming): the front end calls this, so that it has the front end's names.

/// A corner of the lower hull of predicted time and error.
struct PredictedPrecision {
  PrecisionMap slots;     ///< every open slot; CompileOptions::assignment takes it
  double seconds = 0;     ///< time of casts, and what f32 slots take longer than low ones, in the forward pass
  double error = 0;       ///< the relative error that was weighed
  double other_error = 0; ///< the other one
};

/// The slots of the step in `traced` that no rule decides at level auto, in program order. Errors: another level than
/// auto; words of `options` that passes refuse.
absl::StatusOr<std::vector<std::string>> OpenPrecisionSlots(const Module &traced, const CompileOptions &options);

/// Makes the step in `traced` return the values that its slots `open` would round, and their cotangents, behind its
/// other outputs. A slot that is not in what comes back cannot be probed: it lies in a function that the network calls.
SlotProbes ProbePrecisionSlots(Module &traced, const std::vector<std::string> &open);

/// The corners of the hull, the fastest first and the most exact last; their low slots are nested. `weighed` are
/// relative errors with one slot low, by its name: those of the gradient, or those of the loss. `other` has no part in
/// the hull, and is added up for each corner. Squares add up: rounding errors of different slots are taken as
/// independent. Values that data movement shares between slots count once (docs/amp.md). A device
/// that is no faster in the low type has one corner, all f32. Errors: those of OpenPrecisionSlots; costs that a cut
/// does not take.
absl::StatusOr<std::vector<PredictedPrecision>> PredictPrecisionFrontier(const Module &traced,
                                                                         const CompileOptions &options,
                                                                         const std::map<std::string, double> &weighed,
                                                                         const std::map<std::string, double> &other);

// NOLINTEND(readability-identifier-naming)
} // namespace mpc::compiler
