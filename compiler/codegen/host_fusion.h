// A region as host code.
#pragma once

#include "compiler/codegen/fusion_emitter.h"

namespace mpc::codegen {

/// `emitFusion` for Backend::Host. Each sweep and each combination is a stage. Neighbouring stages of one block each
/// become one stage.
FusionCode emitHostFusion(FusionOp fusion, const FusionPlan &plan, llvm::StringRef name, const CodeTarget &target,
                          llvm::Module &module);

} // namespace mpc::codegen
