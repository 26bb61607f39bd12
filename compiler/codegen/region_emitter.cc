#include "compiler/codegen/region_emitter.h"

#include "compiler/codegen/gpu_region.h"
#include "compiler/codegen/host_region.h"

using namespace mlir;

namespace mpc::codegen {

llvm::Expected<RegionCode> emitRegion(FusionOp fusion, llvm::StringRef name, const CodeTarget &target,
                                      llvm::Module &module) {
  llvm::Expected<RegionPlan> plan = RegionPlan::of(fusion);
  if (!plan)
    return plan.takeError();
  if (target.backend == Backend::Host)
    return emitHostRegion(fusion, *plan, name, target, module);
  return emitGpuRegion(fusion, *plan, name, target, module);
}

} // namespace mpc::codegen
