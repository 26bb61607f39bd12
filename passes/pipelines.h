// The pipelines of passes.
#pragma once

#include "compiler/options/compile_options.h"
#include "mlir/Pass/PassManager.h"

namespace mpc {

/// How far a pipeline goes; the IR after each stage is what `--stage` prints.
enum class Stage {
  Traced,    ///< as traced: nothing runs
  Amp,       ///< precision assigned and verified
  Grad,      ///< loss-scale wrap and backward graph, casts cleaned up
  Fused,     ///< guards flattened, channels-last, fused
  Final,     ///< what the backward pass computes again is added
  Scheduled, ///< operations in the order that is lowered
};

/// The pipeline that compiles a training step or a forward function, up to \p until. Stage::Amp: amp, verify-precision.
/// Stage::Grad: sink-relu, loss-scale, verify-loss-scale, autodiff, cast-cleanup. Stage::Fused: flatten-guards,
/// pack-attention, layout, cast-cleanup, fold-activation, fold-gradient-scaling, shadows, group-updates, pad-channels,
/// conv-statistics, pad-classes, chunk-head, renormalize, relu-mask, fusion. Stage::Final: recompute. Stage::Scheduled:
/// schedule, buckets, flat-updates. With `instrument`, instrument comes after the first cast-cleanup. `layout` adds
/// layout and pad-channels, `conv_statistics` the pass of its name, and `pad_classes` = false leaves its pass out.
/// Without fuses(), renormalize and relu-mask are left out, and fusion makes regions of one operation only. A forward
/// function is a step without gradients and updates, so passes that concern these find none. The module has its target.
void buildStepPipeline(mlir::OpPassManager &manager, const compiler::CompileOptions &options, Stage until);

/// The passes that buildStepPipeline adds between Stage::Fused and Stage::Scheduled: recompute, schedule, buckets,
/// flat-updates.
void buildPlanPipeline(mlir::OpPassManager &manager, const compiler::CompileOptions &options);

/// Every pass of passes.td, and the pipeline `mpc-step-pipeline`. Its options are those of the kind OfPasses, the
/// device whose target the module gets, if any, and the stage, Final by default. `fusion` is off by
/// default where that option names another device than the CPU.
void registerMpcPasses();

} // namespace mpc
