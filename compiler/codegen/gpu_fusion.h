// A region as GPU code, and as its emulation on the host.
#pragma once

#include "compiler/codegen/fusion_emitter.h"

namespace mpc::codegen {

/// `emitFusion` for Backend::Nvptx and Backend::Emulated.
llvm::Expected<FusionCode> emitGpuFusion(FusionOp fusion, const FusionPlan &plan, llvm::StringRef name,
                                         const CodeTarget &target, llvm::Module &module);

} // namespace mpc::codegen
