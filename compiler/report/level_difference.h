// Compares a function at two levels. Free of MLIR headers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::compiler {

/// A module and what to call it: "O2".
struct NamedModule {
  const Module *module = nullptr;
  std::string name;
};

/// Compares `function` in two modules of one program, operation by operation. Operations are the same if Cell, name,
/// direction and position among their likes are. Prints operations whose types differ, with the reason in `to`, and
/// operations that only one side has. Prints casts by kind on both sides, and the bytes that operations and casts move.
/// Errors: NOT_FOUND where a module has no such function with a body.
absl::StatusOr<std::string> LevelDifference(const NamedModule &from, const NamedModule &to,
                                            const std::string &function);

} // namespace mpc::compiler
