// The instruction that calls a region's code.
#pragma once

#include "compiler/codegen/code_generator.h"
#include "runtime/program.h"

#include <utility>
#include <vector>

namespace mpc::compiler {

/// An output of a region and the input in whose storage it is written.
using RegionAlias = std::pair<unsigned, unsigned>;

/// The instruction of \p Fusion without its operands; see runtime/generated_call.h for its attributes.
runtime::Instruction regionInstruction(FusionOp Fusion, const codegen::GeneratedCall &Call,
                                       const std::vector<RegionAlias> &Aliases);

} // namespace mpc::compiler
