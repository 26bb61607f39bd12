// From a traced module to a Program. Free of MLIR headers, as the front end is.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph_builder.h"
#include "runtime/plan_options.h"
#include "runtime/program.h"

namespace mpc::compiler {

/// The precision of each slot of the networks, by name: "lenet5/conv1#conv2d.0" -> "f16"; see
/// passes/amp/stored_assignment.h. Solved at O1 and auto, reused by every Program of a Model, kept in checkpoints.
using PrecisionMap = std::map<std::string, std::string>;

/// What level auto knows of a device; see passes/amp/cost_model.h. A field that is zero takes the pass's default.
struct DeviceRates {
  double bytes_per_second = 0;      ///< memory read and written by element-wise work
  double low_flops = 0;             ///< floating-point operations a second of matrix work in the low type
  double f32_flops = 0;             ///< the same in f32
  double seconds_per_operation = 0; ///< what an operation costs beyond its work: launch, dispatch
};

/// What the pipelines need to know; see passes/pipelines.h.
struct CompileOptions {
  std::string function;                ///< the public function to compile; the others are left out
  std::string level = "O0";            ///< O0, O1, O2, O3, auto
  std::string dtype = "f16";           ///< f16, bf16
  std::string keep_batchnorm_fp32;     ///< "true", "false"; empty: the level's default
  std::string loss_scale = "none";     ///< none, static, dynamic
  bool skip = true;                    ///< skip the update of a step that is not finite
  bool unscale = true;                 ///< divide gradients by the scale; false where the optimizer does
  std::int64_t num_losses = 1;         ///< loss scalers; one is shared by every loss
  std::int64_t accumulation_steps = 1; ///< micro-steps (runs of the step) before an optimizer acts
  bool master_weights = true;          ///< false: parameters that are only used low are stored low
  /// Compute neighbouring operations in one generated kernel (mpc-fusion); left out: the device's default.
  std::optional<bool> fusion;
  /// Parts that the rows of a language model's head are cut into (mpc-chunk-head): with `memory_budget` at least.
  std::int64_t head_chunks = 1;
  /// Bytes of arena, state and constants together. Where a step plans more, its head is computed in chunks and the
  /// backward pass computes values again until it fits: see compiler/memory_budget.h. 0: no limit.
  std::int64_t memory_budget = 0;
  /// CUDA: batch normalisation takes its statistics from f16 convolutions (mpc-conv-statistics).
  bool conv_statistics = false;
  bool instrument = false; ///< measure values instead of updating state (mpc-instrument)
  std::string device = "cpu";
  runtime::PlanOptions plan; ///< how the device chooses kernels
  /// Where generated code is kept between processes; empty: MPC_CACHE_DIR, or else mpc's folder in the user's cache
  /// folder; "off": nowhere.
  std::string cache_dir;
  unsigned threads = 0; ///< that generate code; 0: the processor's cores
  std::string arch; ///< to compile for where the device itself need not be here: "sm_80", "sm_90"; empty: this machine
  /// Operation names ("softmax", "conv2d") or Cell paths ("lenet5/fc1", which covers what is inside) that get another
  /// class than their own. Errors: an entry in two lists.
  std::vector<std::string> allow, deny, infer, clear;
  PrecisionMap assignment; ///< O1, auto: used instead of solving where it names a slot; empty: solved
  DeviceRates rates;       ///< auto
  /// How many values and Cells the backward pass computes again unasked (mpc-recompute); what a budget chooses.
  std::int64_t recompute = 0;
};

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

/// Where a pipeline stops: "traced", "amp", "grad", "final".
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
