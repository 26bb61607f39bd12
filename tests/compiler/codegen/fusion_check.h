// What generated code of a region must be: the operations of the region, each rounded once, whatever the order of
// tiles.
#pragma once

#include <string_view>

#include "compiler/codegen/fusion_emitter.h"

namespace mpc::test {

/// Compiles the mpc.fusion in the function that `text` spells, runs it on drawn values, and expects
///  * equal bits with the tiles in order, in reverse and on two threads;
///  * the same bits where an output lies over an input that it may alias;
///  * nothing written beside outputs and workspace;
///  * of operations without a reduction the bits of the CPU kernel on the same operands;
///  * of the others values within the bound derived for f32 arithmetic, and one rounding.
/// Operands that a reduction gives must be yielded, so that they are known. `aliases`, where it is not negative: how
/// many pairs of outputs and inputs may share storage.
void ExpectRegionIsItsOperations(std::string_view text, const codegen::CodeTarget& target, int aliases = -1);

}  // namespace mpc::test
