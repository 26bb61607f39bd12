// A region as host code.
#pragma once

#include "compiler/codegen/region_emitter.h"

namespace mpc::codegen {

/// `emitRegion` for Backend::Host. Each sweep and each combination is a stage. Neighbouring stages of one block each
/// become one stage.
RegionCode emitHostRegion(FusionOp Fusion, const RegionPlan &Plan, llvm::StringRef Name, const CodeTarget &Target,
                          llvm::Module &Module);

} // namespace mpc::codegen
