// IR text as a Module. Free of MLIR headers.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::compiler {

/// Parses and verifies `text`. Errors: INVALID_ARGUMENT with the parser's or verifier's diagnostics.
absl::StatusOr<Module> ParseModule(std::string_view text); // NOLINT(readability-identifier-naming): tools call it

} // namespace mpc::compiler
