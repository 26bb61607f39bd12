// Why an operation has its precision, and why the casts beside it are there. Free of MLIR headers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::compiler {

/// Explains the operations of `function` that `what` names. `what` is an operation ("conv2d", every one of that name)
/// or an ordinal of the precision report ("#3", "3"). It may also be a Cell path ("lenet5/conv1", with all inside). For
/// each operation the text has its types, the rule that decided and what the rule says. Where the infer rule or the
/// minimum cut decided, it has the path to the pin that the type comes from. A gradient has its forward operation. It
/// has each cast that the operation reads or that reads it, with its bytes and the reason of its other side. It has the
/// operations that one kernel computes with it.
///
/// The module has been through precision assignment: reasons are those of `mpc.precision`. Errors: NOT_FOUND for an
/// unknown function, or a name that no operation has, with the nearest one and all that exist.
absl::StatusOr<std::string> ExplainPrecision(const Module &module, const std::string &function,
                                             const std::string &what);

/// What ExplainPrecision says of each operation, in the order of their ordinals. Errors: NOT_FOUND for an unknown
/// function.
absl::StatusOr<std::vector<std::string>> ExplainEach(const Module &module, const std::string &function);

} // namespace mpc::compiler
