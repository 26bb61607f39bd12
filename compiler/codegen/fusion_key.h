// The key by which the code generator tells whether two regions are the same.
#pragma once

#include "compiler/codegen/fusion_emitter.h"

#include <string>

namespace mpc::codegen {

/// Describes as text what a region computes: operations, the flow of values, types, inherent attributes. Locations and
/// discardable attributes such as mpc.scope are left out.
std::string describeFusion(FusionOp fusion);

/// The key of a region, 32 hexadecimal digits: regions share it only if one code serves both. It is a hash of the
/// description, the target, and the versions of mpc, LLVM and the emitter.
std::string fusionKey(FusionOp fusion, const CodeTarget &target);

} // namespace mpc::codegen
