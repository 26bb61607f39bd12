// A region as GPU code, and as its emulation on the host.
#pragma once

#include "compiler/codegen/region_emitter.h"

namespace mpc::codegen {

/// `emitRegion` for Backend::Nvptx and Backend::Emulated.
llvm::Expected<RegionCode> emitGpuRegion(FusionOp Fusion, const RegionPlan &Plan, llvm::StringRef Name,
                                         const CodeTarget &Target, llvm::Module &Module);

} // namespace mpc::codegen
