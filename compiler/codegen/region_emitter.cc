#include "compiler/codegen/region_emitter.h"

#include "compiler/codegen/gpu_region.h"
#include "compiler/codegen/host_region.h"

using namespace mlir;

namespace mpc::codegen {

llvm::Expected<RegionCode> emitRegion(FusionOp Fusion, llvm::StringRef Name, const CodeTarget &Target,
                                      llvm::Module &Module) {
  llvm::Expected<RegionPlan> Plan = RegionPlan::of(Fusion);
  if (!Plan)
    return Plan.takeError();
  if (Target.backend == Backend::Host)
    return emitHostRegion(Fusion, *Plan, Name, Target, Module);
  return emitGpuRegion(Fusion, *Plan, Name, Target, Module);
}

} // namespace mpc::codegen
