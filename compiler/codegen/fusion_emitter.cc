#include "compiler/codegen/fusion_emitter.h"

#include "compiler/codegen/gpu_fusion.h"
#include "compiler/codegen/host_fusion.h"

using namespace mlir;

namespace mpc::codegen {

llvm::Expected<FusionCode> emitFusion(FusionOp fusion, llvm::StringRef name, const CodeTarget &target,
                                      llvm::Module &module) {
  llvm::Expected<FusionPlan> plan = FusionPlan::create(fusion);
  if (!plan)
    return plan.takeError();
  if (target.backend == Backend::Host)
    return emitHostFusion(fusion, *plan, name, target, module);
  return emitGpuFusion(fusion, *plan, name, target, module);
}

} // namespace mpc::codegen
