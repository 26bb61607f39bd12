// What a compilation is asked for, and the list of its options. Free of MLIR headers, as the front end is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/module/precision_map.h"
#include "runtime/plan_options.h"

namespace mpc::compiler {

/// What level auto knows of a device; see passes/precision/cost_model.h. A field that is zero takes the pass's default.
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
  /// backward pass computes values again until it fits: see compiler/driver/memory_budget.h. 0: no limit.
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

/// Whether an option changes the Program that comes out, or only how long it takes to come out.
enum class OptionKind { kOfProgram, kOfCompilation };

/// Calls \p Visit(name, member, kind) for each option of \p Given, a CompileOptions, those of its structures among
/// them. Keys of compiled steps are made of this list. A test breaks where a member is missing in it.
template <typename Options, typename Visitor> void visitOptions(Options &Given, Visitor &&Visit) {
  Visit("function", Given.function, OptionKind::kOfProgram);
  Visit("level", Given.level, OptionKind::kOfProgram);
  Visit("dtype", Given.dtype, OptionKind::kOfProgram);
  Visit("keep_batchnorm_fp32", Given.keep_batchnorm_fp32, OptionKind::kOfProgram);
  Visit("loss_scale", Given.loss_scale, OptionKind::kOfProgram);
  Visit("skip", Given.skip, OptionKind::kOfProgram);
  Visit("unscale", Given.unscale, OptionKind::kOfProgram);
  Visit("num_losses", Given.num_losses, OptionKind::kOfProgram);
  Visit("accumulation_steps", Given.accumulation_steps, OptionKind::kOfProgram);
  Visit("master_weights", Given.master_weights, OptionKind::kOfProgram);
  Visit("fusion", Given.fusion, OptionKind::kOfProgram);
  Visit("head_chunks", Given.head_chunks, OptionKind::kOfProgram);
  Visit("memory_budget", Given.memory_budget, OptionKind::kOfProgram);
  Visit("conv_statistics", Given.conv_statistics, OptionKind::kOfProgram);
  Visit("instrument", Given.instrument, OptionKind::kOfProgram);
  Visit("device", Given.device, OptionKind::kOfProgram);
  Visit("plan.tune", Given.plan.tune, OptionKind::kOfProgram);
  Visit("plan.choice_cache", Given.plan.choice_cache, OptionKind::kOfProgram);
  Visit("plan.allow_tf32", Given.plan.allow_tf32, OptionKind::kOfProgram);
  Visit("plan.allow_winograd", Given.plan.allow_winograd, OptionKind::kOfProgram);
  Visit("plan.keep_packed_weights", Given.plan.keep_packed_weights, OptionKind::kOfProgram);
  Visit("plan.flat_share", Given.plan.flat_share, OptionKind::kOfProgram);
  Visit("cache_dir", Given.cache_dir, OptionKind::kOfCompilation);
  Visit("threads", Given.threads, OptionKind::kOfCompilation);
  Visit("arch", Given.arch, OptionKind::kOfProgram);
  Visit("allow", Given.allow, OptionKind::kOfProgram);
  Visit("deny", Given.deny, OptionKind::kOfProgram);
  Visit("infer", Given.infer, OptionKind::kOfProgram);
  Visit("clear", Given.clear, OptionKind::kOfProgram);
  Visit("assignment", Given.assignment, OptionKind::kOfProgram);
  Visit("rates.bytes_per_second", Given.rates.bytes_per_second, OptionKind::kOfProgram);
  Visit("rates.low_flops", Given.rates.low_flops, OptionKind::kOfProgram);
  Visit("rates.f32_flops", Given.rates.f32_flops, OptionKind::kOfProgram);
  Visit("rates.seconds_per_operation", Given.rates.seconds_per_operation, OptionKind::kOfProgram);
  Visit("recompute", Given.recompute, OptionKind::kOfProgram);
}

/// Every option of the kind kOfProgram as text: equal texts, equal Programs of one module.
std::string programKey(const CompileOptions &Options);

} // namespace mpc::compiler
