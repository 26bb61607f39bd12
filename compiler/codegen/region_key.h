// What makes two regions the same to the code generator.
#pragma once

#include "compiler/codegen/region_emitter.h"

#include <string>

namespace mpc::codegen {

/// What a region computes, as text: operations, how values flow, types, inherent attributes. Not where it came from:
/// locations and discardable attributes such as mpc.scope are left out.
std::string describeRegion(FusionOp Fusion);

/// 32 hexadecimal digits that regions share only if one code serves both: of the description, the target, and the
/// versions of mpc, LLVM and the emitter.
std::string regionKey(FusionOp Fusion, const CodeTarget &Target);

} // namespace mpc::codegen
