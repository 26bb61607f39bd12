// The page of a model at every level, for mpc-opt. Free of MLIR headers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/mpc-opt/model_source.h"

namespace mpc::opt {

/// compiler::StepPage of the model at O0, O1, O2, O3 and auto. The level of `request` is opened, O2 where it names
/// none. A level that the other options of `request` exclude has the reason on the page. Errors: those of MakeNetwork;
/// those of TraceNetwork and compiler::Compile at the level that is opened.
absl::StatusOr<std::string> ModelPage(const ModelRequest& request);

}  // namespace mpc::opt
