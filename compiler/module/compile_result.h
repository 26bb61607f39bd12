// The result of a compilation. Free of MLIR headers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/module/graph_builder.h"
#include "compiler/options/compile_options.h"
#include "runtime/program.h"

namespace mpc::compiler {

/// Wall time of one phase or pass; `depth` gives the tree. The parts of "code generation" are summed over its threads.
struct PhaseTime {
  std::string name;
  double seconds = 0;
  int depth = 0;
};

/// Counts of generated code: the regions that became generated kernels, the distinct kernels, and the kernels found in
/// the cache. `assembled` counts the kernels that were assembled; plans that were given up never need that.
struct CodeCounts {
  unsigned regions = 0;
  unsigned distinct = 0;
  unsigned from_cache = 0;
  unsigned assembled = 0;
};

struct CompileResult {
  CompileOptions options; ///< the options that were asked for, except what a memory budget chooses
  runtime::Program program;
  Module final_ir;
  std::vector<PhaseTime> phases;
  CodeCounts code;
  unsigned plans = 1;               ///< plans that were made; more than one where a memory budget was to be met
  std::vector<std::string> remarks; ///< what the passes want the user to know
  /// For each record that names a gradient by its position ("first_bad"): the gradients' parameters, then
  /// kNormOfGradients (compiler/dialect/gradient_names.h) for each norm that is checked, too.
  std::map<std::string, std::vector<std::string>> gradients;
  PrecisionMap assignment; ///< O1, auto: what was used, solved or given; empty at other levels
};

} // namespace mpc::compiler
