// Ranges of a model's parameters, for mpc-opt. Free of MLIR headers.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/report/range_table.h"

namespace mpc::opt {

/// The ranges of the parameters of `model` as the checkpoint or the safetensors file `weights` has them, by name.
/// Errors: those of MakeNetwork, LoadParamIntoNet and Parameter::Value.
absl::StatusOr<std::map<std::string, compiler::KnownRange>> RangesOfWeights(const std::string& model,
                                                                            const std::string& weights);

}  // namespace mpc::opt
