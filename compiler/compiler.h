// From a traced module to a Program. Free of MLIR headers, as the front end is.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph_builder.h"
#include "runtime/program.h"

namespace mpc::compiler {

/// What the pipelines need to know; see passes/pipelines.h.
struct CompileOptions {
  std::string function;            ///< the public function to compile; the others are left out
  std::string level = "O0";        ///< O0, O2, O3
  std::string dtype = "f16";       ///< f16, bf16
  std::string keep_batchnorm_fp32; ///< "true", "false"; empty: the level's default
  std::string loss_scale = "none"; ///< none, static, dynamic
  bool skip = true;                ///< skip the update of a step that is not finite
  bool unscale = true;             ///< divide gradients by the scale; false where the optimizer does
  std::string device = "cpu";
};

/// Wall time of one phase or pass; `depth` gives the tree.
struct PhaseTime {
  std::string name;
  double seconds = 0;
  int depth = 0;
};

struct CompileResult {
  runtime::Program program;
  Module final_ir;
  std::vector<PhaseTime> phases;
  std::vector<std::string> remarks; ///< what the passes want the user to know
};

/// Where a pipeline stops: "traced", "amp", "grad", "final".
/// Runs the passes on `module` in place. Errors: INVALID_ARGUMENT with the passes' diagnostics and notes.
absl::Status RunPasses(Module &module, const CompileOptions &options, const std::string &stage,
                       std::vector<PhaseTime> *phases, std::vector<std::string> *remarks);

/// Runs the passes on a copy of `module` and lowers `options.function` for the device.
absl::StatusOr<CompileResult> Compile(const Module &module, const CompileOptions &options);

} // namespace mpc::compiler
