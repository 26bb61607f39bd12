#include "passes/pipelines.h"

#include "mlir/Pass/PassRegistry.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

template <typename PassOptions> static PassOptions withLists(const StepPipelineOptions &Chosen) {
  PassOptions Result;
  Result.level = Chosen.level;
  Result.allow.assign(Chosen.allow.begin(), Chosen.allow.end());
  Result.deny.assign(Chosen.deny.begin(), Chosen.deny.end());
  Result.infer.assign(Chosen.infer.begin(), Chosen.infer.end());
  Result.clear.assign(Chosen.clear.begin(), Chosen.clear.end());
  return Result;
}

static void addPrecision(OpPassManager &Manager, const StepPipelineOptions &Chosen) {
  auto Amp = withLists<AmpPassOptions>(Chosen);
  Amp.dtype = Chosen.dtype;
  Amp.keepBatchNormFp32 = Chosen.keepBatchNormFp32;
  Amp.bytesPerSecond = Chosen.bytesPerSecond;
  Amp.lowFlops = Chosen.lowFlops;
  Amp.f32Flops = Chosen.f32Flops;
  Amp.secondsPerOperation = Chosen.secondsPerOperation;
  Manager.addPass(createAmpPass(Amp));
  Manager.addPass(createVerifyPrecisionPass(withLists<VerifyPrecisionPassOptions>(Chosen)));
}

// Recomputation comes behind fusion: a copy of a region sums in the order of its original, so that its bits are the
// same.
static void addPlan(OpPassManager &Manager, int64_t Candidates, bool Orders) {
  Manager.addNestedPass<func::FuncOp>(createRecomputePass({Candidates}));
  if (!Orders)
    return;
  Manager.addPass(createSchedulePass());
  Manager.addNestedPass<func::FuncOp>(createFlatUpdatesPass());
}

// What is left is what reads parameters low: their shadows come behind. Updates take over what casts have left between
// them and the backward pass. Fusion comes last: it sees what will run.
static void addLayout(OpPassManager &Manager, const StepPipelineOptions &Chosen) {
  if (Chosen.layout)
    Manager.addNestedPass<func::FuncOp>(createLayoutPass());
  Manager.addNestedPass<func::FuncOp>(createCastCleanupPass());
  Manager.addNestedPass<func::FuncOp>(createFoldActivationPass());
  Manager.addNestedPass<func::FuncOp>(createFoldGradientScalingPass());
  Manager.addNestedPass<func::FuncOp>(createShadowPass({Chosen.masterWeights}));
  Manager.addNestedPass<func::FuncOp>(createGroupUpdatesPass());
  if (Chosen.convStatistics)
    Manager.addNestedPass<func::FuncOp>(createConvStatisticsPass());
  Manager.addNestedPass<func::FuncOp>(createChunkHeadPass({Chosen.headChunks}));
  // Alone, the comparison and the selection would be launches of their own.
  if (Chosen.fusion)
    Manager.addNestedPass<func::FuncOp>(createReluMaskPass());
  FusionPassOptions Fusion;
  // Without fusion, too, generated code is all that some operations have.
  if (!Chosen.fusion)
    Fusion.maxOperations = 1;
  Manager.addNestedPass<func::FuncOp>(createFusionPass(Fusion));
  if (Chosen.stage != Stage::Fused)
    addPlan(Manager, Chosen.recompute, /*Orders=*/Chosen.stage == Stage::Scheduled);
}

void buildPlanPipeline(OpPassManager &Manager, int64_t Candidates) { addPlan(Manager, Candidates, /*Orders=*/true); }

void buildStepPipeline(OpPassManager &Manager, const StepPipelineOptions &Options) {
  if (!Options.device.empty())
    Manager.addPass(createAttachTargetPass({Options.device, ""}));
  if (Options.stage == Stage::Traced)
    return;
  addPrecision(Manager, Options);
  if (Options.stage == Stage::Amp)
    return;
  Manager.addNestedPass<func::FuncOp>(createSinkReluPass());
  Manager.addPass(createLossScalePass({Options.lossScale, Options.skip, Options.unscale, Options.numLosses,
                                       Options.accumulationSteps, Options.allReduce}));
  // Behind the wrap, which decides what an optimizer's loss_scale has to divide.
  Manager.addPass(createVerifyLossScalePass());
  Manager.addPass(createAutodiffPass());
  Manager.addNestedPass<func::FuncOp>(createCastCleanupPass());
  if (Options.instrument)
    Manager.addNestedPass<func::FuncOp>(createInstrumentPass());
  if (Options.stage == Stage::Grad)
    return;
  Manager.addNestedPass<func::FuncOp>(createFlattenGuardsPass());
  addLayout(Manager, Options);
}

void registerMpcPasses() {
  registerMpcGraphPasses();
  PassPipelineRegistration<StepPipelineOptions>(
      "mpc-step-pipeline", "A traced step or forward function, through precision, loss scale and autodiff",
      buildStepPipeline);
}

} // namespace mpc
