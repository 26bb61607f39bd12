// A region as host code.
#pragma once

#include "compiler/codegen/region_emitter.h"

namespace mpc::codegen {

/// `emitRegion` for Backend::Host. Each sweep and each combination is a stage. Neighbouring stages of one block each
/// become one stage.
RegionCode emitHostRegion(FusionOp fusion, const RegionPlan &plan, llvm::StringRef name, const CodeTarget &target,
                          llvm::Module &module);

} // namespace mpc::codegen
