// From a traced module to a Program. Free of MLIR headers, as the front end is.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/compile_options.h"
#include "compiler/graph_builder.h"
#include "runtime/program.h"

namespace mpc::compiler {

/// Wall time of one phase or pass; `depth` gives the tree. The parts of "code generation" are summed over its threads.
struct PhaseTime {
  std::string name;
  double seconds = 0;
  int depth = 0;
};

/// How many regions became generated kernels, how many kernels those are, how many of them were found in the cache, and
/// how many were assembled, which plans that were given up never need.
struct CodeCounts {
  unsigned regions = 0;
  unsigned distinct = 0;
  unsigned from_cache = 0;
  unsigned assembled = 0;
};

struct CompileResult {
  runtime::Program program;
  Module final_ir;
  std::vector<PhaseTime> phases;
  CodeCounts code;
  unsigned plans = 1;               ///< that were made; more than one where a memory budget was to be met
  std::vector<std::string> remarks; ///< what the passes want the user to know
  /// For each record that names a gradient by its position ("first_bad"): the gradients' parameters, then
  /// kNormOfGradients (compiler/dialect/gradient_names.h) for each norm that is checked, too.
  std::map<std::string, std::vector<std::string>> gradients;
  PrecisionMap assignment; ///< O1, auto: what was used, solved or given; empty at other levels
};

/// Where a pipeline stops: "traced", "amp", "grad", "final", "scheduled".
/// Runs the passes on `module` in place. Errors: INVALID_ARGUMENT with the passes' diagnostics and notes.
absl::Status RunPasses(Module &module, const CompileOptions &options, const std::string &stage,
                       std::vector<PhaseTime> *phases, std::vector<std::string> *remarks);

/// Runs the passes on a copy of `module` and lowers `options.function` for the device. Errors: what the passes and the
/// device say; RESOURCE_EXHAUSTED for a memory budget that cannot be met, with the smallest peak that can and where it
/// lies.
absl::StatusOr<CompileResult> Compile(const Module &module, const CompileOptions &options);

/// Makes generated code that only this process can load part of what is saved: links it to one shared object. A Program
/// without such code stays as it is. Errors (FAILED_PRECONDITION): no linker, with those that were looked for; what it
/// says.
absl::Status LinkGeneratedCode(runtime::Program &program);

} // namespace mpc::compiler
