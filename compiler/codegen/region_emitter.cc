#include "compiler/codegen/region_emitter.h"

#include "compiler/codegen/gpu_region.h"
#include "compiler/codegen/host_region.h"

using namespace mlir;

namespace mpc::codegen {

static llvm::Error checkOperand(Value V) {
  if (!cast<RankedTensorType>(V.getType()).getElementType().isF64())
    return llvm::Error::success();
  return llvm::createStringError("mpc.fusion: regions compute in f32 and take no f64");
}

static llvm::Error checkRegion(FusionOp Fusion) {
  Block &Body = Fusion.getBody().front();
  for (Value Argument : Body.getArguments())
    if (llvm::Error Failure = checkOperand(Argument))
      return Failure;
  for (Value Yielded : Body.getTerminator()->getOperands())
    if (isa<BlockArgument>(Yielded))
      return llvm::createStringError("mpc.fusion: yields its operand " +
                                     llvm::Twine(cast<BlockArgument>(Yielded).getArgNumber()) +
                                     "; a region stores what its operations compute");
  return llvm::Error::success();
}

llvm::Expected<RegionCode> emitRegion(FusionOp Fusion, llvm::StringRef Name, const CodeTarget &Target,
                                      llvm::Module &Module) {
  if (llvm::Error Failure = checkRegion(Fusion))
    return Failure;
  llvm::Expected<RegionPlan> Plan = RegionPlan::of(Fusion);
  if (!Plan)
    return Plan.takeError();
  if (Target.backend == Backend::Host)
    return emitHostRegion(Fusion, *Plan, Name, Target, Module);
  return emitGpuRegion(Fusion, *Plan, Name, Target, Module);
}

} // namespace mpc::codegen
