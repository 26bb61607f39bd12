// The ways of a module through the passes.
#pragma once

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

#include <string>

namespace mpc {

/// How far a pipeline goes; the IR after each stage is what `--stage` prints.
enum class Stage {
  Traced, ///< as traced: nothing runs
  Amp,    ///< precision assigned and verified
  Grad,   ///< loss-scale wrap and backward graph, casts cleaned up
  Final,  ///< guards flattened, channels-last
};

/// Options that training and evaluation share.
template <typename Derived> struct PrecisionPipelineOptions : public mlir::PassPipelineOptions<Derived> {
  template <typename T> using Option = typename mlir::PassPipelineOptions<Derived>::template Option<T>;

  Option<std::string> level{*this, "level", llvm::cl::desc("O0, O2 or O3"), llvm::cl::init("O0")};
  Option<std::string> dtype{*this, "dtype", llvm::cl::desc("The low type: f16 or bf16"), llvm::cl::init("f16")};
  Option<std::string> keepBatchNormFp32{
      *this, "keep-batchnorm-fp32", llvm::cl::desc("true or false; empty: the level's default"), llvm::cl::init("")};
  Option<bool> layout{*this, "layout", llvm::cl::desc("Make images channels-last"), llvm::cl::init(true)};
  Option<Stage> stage{*this, "stage", llvm::cl::desc("Stop after this stage"), llvm::cl::init(Stage::Final),
                      llvm::cl::values(clEnumValN(Stage::Traced, "traced", "As traced"),
                                       clEnumValN(Stage::Amp, "amp", "Precision assigned"),
                                       clEnumValN(Stage::Grad, "grad", "Loss-scale wrap and backward graph"),
                                       clEnumValN(Stage::Final, "final", "Ready for lowering"))};
};

struct EvalPipelineOptions : public PrecisionPipelineOptions<EvalPipelineOptions> {};

struct TrainPipelineOptions : public PrecisionPipelineOptions<TrainPipelineOptions> {
  Option<std::string> lossScale{*this, "loss-scale", llvm::cl::desc("none, static or dynamic"), llvm::cl::init("none")};
  Option<bool> skip{*this, "skip", llvm::cl::desc("Skip the update of a step that is not finite"),
                    llvm::cl::init(true)};
  Option<bool> unscale{*this, "unscale",
                       llvm::cl::desc("Divide gradients by the scale; false where the optimizer does"),
                       llvm::cl::init(true)};
};

/// amp, verify-precision | loss-scale, autodiff, cast-cleanup | flatten-guards, layout, cast-cleanup.
void buildTrainPipeline(mlir::OpPassManager &Manager, const TrainPipelineOptions &Options);

/// amp, verify-precision | cast-cleanup | layout, cast-cleanup.
void buildEvalPipeline(mlir::OpPassManager &Manager, const EvalPipelineOptions &Options);

/// Every pass of passes.td, and the pipelines `mpc-train-pipeline` and `mpc-eval-pipeline`.
void registerMpcPasses();

} // namespace mpc
