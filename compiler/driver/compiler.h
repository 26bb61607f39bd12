// Compiles a traced module to a Program. Free of MLIR headers, as the front end is.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/compile_result.h"
#include "compiler/module/graph_builder.h"
#include "compiler/options/compile_options.h"
#include "runtime/program.h"

namespace mpc::compiler {
// NOLINTBEGIN(readability-identifier-naming): the front end calls this, so that it has the front end's names.

/// Runs the passes on `module` in place. `stage` says where the pipeline stops: "traced", "amp", "grad", "final",
/// "scheduled". From "final" on they recompute and cut the head as a memory budget asks for. Errors: INVALID_ARGUMENT
/// with the passes' diagnostics and notes; those of Compile for a memory budget.
absl::Status RunPasses(Module &module, const CompileOptions &options, const std::string &stage,
                       std::vector<PhaseTime> *phases, std::vector<std::string> *remarks);

/// Runs the passes on a copy of `module` and lowers `options.function` for the device. Errors: those of the passes and
/// the device; RESOURCE_EXHAUSTED for a memory budget that cannot be met. It names the smallest peak that can be met
/// and where it lies.
absl::StatusOr<CompileResult> Compile(const Module &module, const CompileOptions &options);

/// Makes generated code that only this process can load part of what is saved: links it to one shared object. A Program
/// without such code stays as it is. Errors (FAILED_PRECONDITION): no linker, with those that were looked for; what it
/// says.
absl::Status LinkGeneratedCode(runtime::Program &program);

// NOLINTEND(readability-identifier-naming)
} // namespace mpc::compiler
