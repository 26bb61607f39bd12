// The options of a compilation, and the list of them. Free of MLIR headers, as the front end is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/options/precision_map.h"
#include "runtime/plan_options.h"

namespace mpc::compiler {

/// The rates of a device that level auto uses; see passes/precision/cost_model.h. A field that is zero takes the pass's
/// default.
struct DeviceRates {
  double bytes_per_second = 0;      ///< memory read and written by element-wise work
  double low_flops = 0;             ///< floating-point operations a second of matrix work in the low type
  double f32_flops = 0;             ///< the same in f32
  double seconds_per_operation = 0; ///< what an operation costs beyond its work: launch, dispatch
};

/// The options of a compilation. visitOptions below says what each member means.
struct CompileOptions {
  std::string function;
  std::string level = "O0";
  std::string dtype = "f16";
  std::string keep_batchnorm_fp32;
  std::string loss_scale = "none";
  bool skip = true;
  bool unscale = true;
  std::int64_t num_losses = 1;
  std::int64_t accumulation_steps = 1;
  std::int64_t processes = 1;
  bool last_micro_step = true;
  bool gradients_mean = true;
  std::string communication_dtype = "f32";
  std::int64_t bucket_mib = 25;
  bool master_weights = true;
  std::vector<std::string> allow, deny, infer, clear;
  DeviceRates rates;
  bool instrument = false;
  bool layout = true;
  std::optional<bool> fusion;
  std::int64_t head_chunks = 1;
  std::optional<bool> pad_classes;
  bool conv_statistics = false;
  std::int64_t recompute = 0;
  std::string device = "cpu";
  std::string arch;
  std::int64_t memory_budget = 0;
  runtime::PlanOptions plan;
  PrecisionMap assignment;
  std::string cache_dir;
  unsigned threads = 0;

  /// `fusion`, or its default.
  bool fuses() const { return fusion.value_or(true); }
};

/// What an option changes.
enum class OptionKind {
  OfPasses,      ///< changes the IR, and so the Program: an option of the pipeline `mpc-step-pipeline`
  OfProgram,     ///< changes the Program, but is no option of the passes
  OfCompilation, ///< changes only how long the compilation takes
};

/// An option, as keys, flags, pipelines and reports have it.
struct OptionInfo {
  const char *name; ///< the member: "loss_scale", "plan.tune"
  OptionKind kind;
  const char *help; ///< one or two sentences, and the default
};

/// Calls \p visit(OptionInfo, member) for each option of \p given, a CompileOptions, those of its structures among
/// them. A test breaks where a member is missing in this list.
template <typename Options, typename Visitor> void visitOptions(Options &given, Visitor &&visit) {
  using enum OptionKind;
  visit(OptionInfo{"function", OfProgram, "The public function to compile; the others are left out."}, given.function);
  visit(OptionInfo{"level", OfPasses, "O0, O1, O2, O3 or auto. Default O0."}, given.level);
  visit(OptionInfo{"dtype", OfPasses, "The low type: f16, bf16, or auto for the device's own. Default f16."},
        given.dtype);
  visit(OptionInfo{"keep_batchnorm_fp32", OfPasses, "Norms in f32: true or false. Default: the level's."},
        given.keep_batchnorm_fp32);
  visit(OptionInfo{"loss_scale", OfPasses, "none, static or dynamic. Default none."}, given.loss_scale);
  visit(OptionInfo{"skip", OfPasses, "Skips the update of a step that is not finite. Default true."}, given.skip);
  visit(OptionInfo{"unscale", OfPasses, "Divides gradients by the scale. false: the optimizer does. Default true."},
        given.unscale);
  visit(OptionInfo{"num_losses", OfPasses, "Loss scalers. One is shared by every loss. Default 1."}, given.num_losses);
  visit(OptionInfo{"accumulation_steps", OfPasses,
                   "Micro-steps, which are runs of the step, before an optimizer acts. Default 1."},
        given.accumulation_steps);
  visit(OptionInfo{"processes", OfPasses,
                   "Processes that train together: each runs the step on rows of its own. A power of two. Default 1."},
        given.processes);
  visit(OptionInfo{"last_micro_step", OfPasses,
                   "Where several processes accumulate: the step is the last micro-step, in which they reduce and "
                   "optimizers act. false: it is one before the last. Default true."},
        given.last_micro_step);
  visit(OptionInfo{"gradients_mean", OfPasses,
                   "Divides the sum of gradients over processes by their number. Default true."},
        given.gradients_mean);
  visit(OptionInfo{"communication_dtype", OfPasses,
                   "What micro-steps and processes add gradients in: f32, f16 or bf16. Default f32."},
        given.communication_dtype);
  visit(
      OptionInfo{"bucket_mib", OfPasses,
                 "MiB of gradients that processes exchange in one message. 0: every gradient is a message of its own. "
                 "Default 25."},
      given.bucket_mib);
  visit(OptionInfo{"master_weights", OfPasses,
                   "Keeps parameters in f32. false: those that are only used low are stored low. Default true."},
        given.master_weights);
  visit(OptionInfo{"allow", OfPasses, "Operations or Cell paths that may run low at O1 and auto."}, given.allow);
  visit(OptionInfo{"deny", OfPasses, "Operations or Cell paths that compute in f32."}, given.deny);
  visit(OptionInfo{"infer", OfPasses, "Operations or Cell paths that follow their inputs."}, given.infer);
  visit(OptionInfo{"clear", OfPasses, "Operations or Cell paths that move or compare values."}, given.clear);
  visit(OptionInfo{"rates.bytes_per_second", OfPasses, "auto: memory read and written by element-wise work."},
        given.rates.bytes_per_second);
  visit(OptionInfo{"rates.low_flops", OfPasses, "auto: floating-point operations a second of matrix work, low."},
        given.rates.low_flops);
  visit(OptionInfo{"rates.f32_flops", OfPasses, "auto: floating-point operations a second of matrix work in f32."},
        given.rates.f32_flops);
  visit(OptionInfo{"rates.seconds_per_operation", OfPasses,
                   "auto: what an operation costs beyond its work, such as its launch."},
        given.rates.seconds_per_operation);
  visit(OptionInfo{"instrument", OfPasses, "Measures values instead of updating state. Default false."},
        given.instrument);
  visit(OptionInfo{"layout", OfPasses, "Makes images channels-last. Default true."}, given.layout);
  visit(OptionInfo{"fusion", OfPasses, "Computes neighbouring operations in one generated kernel. Default true."},
        given.fusion);
  visit(OptionInfo{"head_chunks", OfPasses,
                   "Chunks of rows that a language model's head is computed in, so that fewer logits live at a time. "
                   "With a memory budget at least. Default 1."},
        given.head_chunks);
  visit(
      OptionInfo{"pad_classes", OfPasses,
                 "cuda: computes an f16 or bf16 head on classes that are padded to a multiple of 8. true: every head; "
                 "false: none. Default: those that gain from it."},
      given.pad_classes);
  visit(OptionInfo{"conv_statistics", OfPasses,
                   "cuda: f16 convolutions compute the statistics of the batch normalisation behind them, with f32 "
                   "sums."},
        given.conv_statistics);
  visit(OptionInfo{"recompute", OfPasses,
                   "Values and Cells that the backward pass computes again unasked; what a memory budget chooses. "
                   "Default 0."},
        given.recompute);
  visit(OptionInfo{"device", OfProgram, "What steps are compiled for: cpu or cuda. Default cpu."}, given.device);
  visit(OptionInfo{"arch", OfProgram,
                   "cuda: compiles for this architecture, where no such device need be: sm_80 or sm_90. Default: this "
                   "machine's."},
        given.arch);
  visit(OptionInfo{"memory_budget", OfProgram,
                   "What a step may plan for arena, state and constants (1GiB, 512MiB): a language model's head is "
                   "computed in chunks and values are computed again in the backward pass until it fits. Default: no "
                   "limit."},
        given.memory_budget);
  visit(
      OptionInfo{"plan.tune", OfProgram, "Chooses kernels by timing them, not by rules and the libraries' heuristics."},
      given.plan.tune);
  visit(OptionInfo{"plan.choice_cache", OfProgram, "Kernel choices of earlier runs, read and written; empty: none."},
        given.plan.choice_cache);
  visit(OptionInfo{"plan.allow_tf32", OfProgram, "cuda: f32 products on tensor cores, with 10 bits of mantissa."},
        given.plan.allow_tf32);
  visit(OptionInfo{"plan.allow_winograd", OfProgram,
                   "cpu: f32 convolutions with 3x3 windows by Winograd's algorithm, which is faster and rounds more."},
        given.plan.allow_winograd);
  visit(OptionInfo{"plan.keep_packed_weights", OfProgram,
                   "cpu: packs a weight that a Program only reads once, not in every run. Default true."},
        given.plan.keep_packed_weights);
  visit(OptionInfo{"plan.flat_share", OfProgram,
                   "How much larger the arena may be so that gradients lie in flat buffers, as a share of it."},
        given.plan.flat_share);
  visit(OptionInfo{"assignment", OfProgram,
                   "O1, auto: the type of each slot, used instead of solving where it names one; empty: solved."},
        given.assignment);
  visit(OptionInfo{"cache_dir", OfCompilation,
                   "Where generated code is kept between processes; off: nowhere. Default: MPC_CACHE_DIR, else mpc's "
                   "folder in the user's cache folder."},
        given.cache_dir);
  visit(OptionInfo{"threads", OfCompilation, "Threads that generate code. Default 0: one a core."}, given.threads);
}

/// The help of the option \p name, which exists.
const char *optionHelp(std::string_view name);

/// Every option that changes the Program as text: equal texts, equal Programs of one module.
std::string programKey(const CompileOptions &options);

} // namespace mpc::compiler
