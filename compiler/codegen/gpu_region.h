// A region as GPU code, and as its emulation on the host.
#pragma once

#include "compiler/codegen/region_emitter.h"

namespace mpc::codegen {

/// `emitRegion` for Backend::Nvptx and Backend::Emulated.
llvm::Expected<RegionCode> emitGpuRegion(FusionOp fusion, const RegionPlan &plan, llvm::StringRef name,
                                         const CodeTarget &target, llvm::Module &module);

} // namespace mpc::codegen
