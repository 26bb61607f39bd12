// The ways of a module through the passes.
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
  Final,     ///< with what the backward pass computes again
  Scheduled, ///< in the order that is lowered
};

/// The pipeline that compiles a training step or a forward function, up to \p Until: amp, verify-precision | sink-relu,
/// loss-scale, verify-loss-scale, autodiff, cast-cleanup | flatten-guards, layout, cast-cleanup, fold-activation,
/// fold-gradient-scaling, shadows, group-updates, conv-statistics, chunk-head, relu-mask, fusion | recompute |
/// schedule, flat-updates. With `instrument`, instrument stands behind the first cast-cleanup. A forward function is a
/// step without gradients and updates: what concerns these finds none. The module has its target.
void buildStepPipeline(mlir::OpPassManager &Manager, const compiler::CompileOptions &Options, Stage Until);

/// What buildStepPipeline adds between Stage::Fused and Stage::Scheduled: recompute, schedule, flat-updates.
void buildPlanPipeline(mlir::OpPassManager &Manager, int64_t Candidates);

/// Every pass of passes.td, and the pipeline `mpc-step-pipeline`. Its options are those of the kind kOfPasses, the
/// device whose target the module gets, if any, and the stage.
void registerMpcPasses();

} // namespace mpc
