// The ways of a module through the passes.
#pragma once

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

#include <string>

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

/// The options of the pipeline that compiles a training step or a forward function.
struct StepPipelineOptions : public mlir::PassPipelineOptions<StepPipelineOptions> {
  Option<std::string> level{*this, "level", llvm::cl::desc("O0, O1, O2, O3 or auto"), llvm::cl::init("O0")};
  Option<std::string> dtype{*this, "dtype", llvm::cl::desc("The low type: f16 or bf16"), llvm::cl::init("f16")};
  Option<std::string> keepBatchNormFp32{
      *this, "keep-batchnorm-fp32", llvm::cl::desc("true or false; empty: the level's default"), llvm::cl::init("")};
  ListOption<std::string> allow{*this, "allow", llvm::cl::desc("Operations or Cell paths to run low")};
  ListOption<std::string> deny{*this, "deny", llvm::cl::desc("Operations or Cell paths to run in f32")};
  ListOption<std::string> infer{*this, "infer", llvm::cl::desc("Operations or Cell paths to treat as Infer")};
  ListOption<std::string> clear{*this, "clear", llvm::cl::desc("Operations or Cell paths to treat as Clear")};
  Option<double> bytesPerSecond{*this, "bytes-per-second", llvm::cl::desc("auto: memory rate; 0: the default"),
                                llvm::cl::init(0)};
  Option<double> lowFlops{*this, "low-flops", llvm::cl::desc("auto: low matrix rate; 0: the default"),
                          llvm::cl::init(0)};
  Option<double> f32Flops{*this, "f32-flops", llvm::cl::desc("auto: f32 matrix rate; 0: the default"),
                          llvm::cl::init(0)};
  Option<double> secondsPerOperation{*this, "seconds-per-operation",
                                     llvm::cl::desc("auto: overhead of an operation; 0: the default"),
                                     llvm::cl::init(0)};
  Option<bool> masterWeights{
      *this, "master-weights",
      llvm::cl::desc("Keep parameters in f32; false: those that are only used low are stored low"),
      llvm::cl::init(true)};
  Option<bool> layout{*this, "layout", llvm::cl::desc("Make images channels-last"), llvm::cl::init(true)};
  Option<bool> fusion{*this, "fusion", llvm::cl::desc("Compute neighbouring operations in one generated kernel"),
                      llvm::cl::init(true)};
  Option<bool> convStatistics{*this, "conv-statistics",
                              llvm::cl::desc("Take the statistics of batch normalisation from f16 convolutions"),
                              llvm::cl::init(false)};
  Option<int64_t> headChunks{*this, "head-chunks",
                             llvm::cl::desc("Parts that the rows of a language model's head are cut into"),
                             llvm::cl::init(1)};
  Option<int64_t> recompute{*this, "recompute",
                            llvm::cl::desc("Values and Cells that the backward pass computes again unasked"),
                            llvm::cl::init(0)};
  Option<std::string> device{*this, "device", llvm::cl::desc("The module's target; empty: what it has"),
                             llvm::cl::init("")};
  Option<Stage> stage{*this, "stage", llvm::cl::desc("Stop after this stage"), llvm::cl::init(Stage::Final),
                      llvm::cl::values(clEnumValN(Stage::Traced, "traced", "As traced"),
                                       clEnumValN(Stage::Amp, "amp", "Precision assigned"),
                                       clEnumValN(Stage::Grad, "grad", "Loss-scale wrap and backward graph"),
                                       clEnumValN(Stage::Fused, "fused", "Fused; nothing is computed again"),
                                       clEnumValN(Stage::Final, "final", "Computed again where that is asked for"),
                                       clEnumValN(Stage::Scheduled, "scheduled", "In the order that is lowered"))};
  Option<std::string> lossScale{*this, "loss-scale", llvm::cl::desc("none, static or dynamic"), llvm::cl::init("none")};
  Option<bool> skip{*this, "skip", llvm::cl::desc("Skip the update of a step that is not finite"),
                    llvm::cl::init(true)};
  Option<bool> instrument{*this, "instrument", llvm::cl::desc("Measure values instead of updating state"),
                          llvm::cl::init(false)};
  Option<bool> unscale{*this, "unscale",
                       llvm::cl::desc("Divide gradients by the scale; false where the optimizer does"),
                       llvm::cl::init(true)};
  Option<int64_t> numLosses{*this, "num-losses", llvm::cl::desc("Loss scalers; one is shared by every loss"),
                            llvm::cl::init(1)};
  Option<int64_t> accumulationSteps{*this, "accumulation-steps", llvm::cl::desc("Micro-steps before an optimizer acts"),
                                    llvm::cl::init(1)};
  Option<bool> allReduce{*this, "all-reduce", llvm::cl::desc("Sum each gradient over processes"),
                         llvm::cl::init(false)};
};

/// Where a device is named, attach-target. Then amp, verify-precision | sink-relu, loss-scale, verify-loss-scale,
/// autodiff, cast-cleanup | flatten-guards, layout, cast-cleanup, fold-activation, fold-gradient-scaling, shadows,
/// group-updates, conv-statistics, chunk-head, relu-mask, fusion | recompute | schedule, flat-updates. With
/// `instrument`, instrument stands behind the first cast-cleanup. A forward function is a step without gradients and
/// updates: what concerns these finds none.
void buildStepPipeline(mlir::OpPassManager &Manager, const StepPipelineOptions &Options);

/// What buildStepPipeline adds between Stage::Fused and Stage::Scheduled: recompute, schedule, flat-updates.
void buildPlanPipeline(mlir::OpPassManager &Manager, int64_t Candidates);

/// Every pass of passes.td, and the pipeline `mpc-step-pipeline`.
void registerMpcPasses();

} // namespace mpc
