// From the regions of a compiled function to code for its device.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/compiler.h"
#include "runtime/executable.h"

namespace mpc::compiler {

/// Generates the code of \p Function's regions for \p Target, and adds to \p Result what that took, from where it came
/// and what the user should know. Errors: UNAVAILABLE where no code is made for the target, INVALID_ARGUMENT for a
/// region that cannot be generated.
absl::StatusOr<codegen::GeneratedCode> generateCodeFor(mlir::func::FuncOp Function, const runtime::Device &Target,
                                                       const CompileOptions &Options, CompileResult &Result);

} // namespace mpc::compiler
