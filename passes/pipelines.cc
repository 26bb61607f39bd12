#include "passes/pipelines.h"

#include "mlir/Pass/PassRegistry.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

template <typename Options> static void addPrecision(OpPassManager &Manager, const Options &Chosen) {
  Manager.addPass(createAmpPass({Chosen.level, Chosen.dtype, Chosen.keepBatchNormFp32}));
  Manager.addPass(createVerifyPrecisionPass());
}

static void addLayout(OpPassManager &Manager, bool Layout) {
  if (Layout)
    Manager.addNestedPass<func::FuncOp>(createLayoutPass());
  Manager.addNestedPass<func::FuncOp>(createCastCleanupPass());
}

void buildTrainPipeline(OpPassManager &Manager, const TrainPipelineOptions &Options) {
  if (Options.stage == Stage::Traced)
    return;
  addPrecision(Manager, Options);
  if (Options.stage == Stage::Amp)
    return;
  Manager.addPass(createLossScalePass({Options.lossScale, Options.skip, Options.unscale}));
  Manager.addPass(createAutodiffPass());
  Manager.addNestedPass<func::FuncOp>(createCastCleanupPass());
  if (Options.stage == Stage::Grad)
    return;
  Manager.addNestedPass<func::FuncOp>(createFlattenGuardsPass());
  addLayout(Manager, Options.layout);
}

void buildEvalPipeline(OpPassManager &Manager, const EvalPipelineOptions &Options) {
  if (Options.stage == Stage::Traced)
    return;
  addPrecision(Manager, Options);
  if (Options.stage == Stage::Amp)
    return;
  Manager.addNestedPass<func::FuncOp>(createCastCleanupPass());
  if (Options.stage == Stage::Grad)
    return;
  addLayout(Manager, Options.layout);
}

void registerMpcPasses() {
  registerMpcGraphPasses();
  PassPipelineRegistration<TrainPipelineOptions>(
      "mpc-train-pipeline", "A traced training step, through precision, loss scale and autodiff", buildTrainPipeline);
  PassPipelineRegistration<EvalPipelineOptions>("mpc-eval-pipeline", "A traced forward function, through precision",
                                                buildEvalPipeline);
}

} // namespace mpc
