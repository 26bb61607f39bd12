// A region as host code.
#pragma once

#include "compiler/codegen/region_emitter.h"

namespace mpc::codegen {

/// `emitRegion` for Backend::Host. One stage a sweep and one a combination; neighbours of one block each become one
/// stage.
RegionCode emitHostRegion(FusionOp Fusion, const RegionPlan &Plan, llvm::StringRef Name, const CodeTarget &Target,
                          llvm::Module &Module);

} // namespace mpc::codegen
