// Makes instructions of operations and regions.
#pragma once

#include "compiler/codegen/code_generator.h"
#include "runtime/program.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <utility>
#include <vector>

namespace mpc::compiler {

/// An output of a region and the input in whose storage it is written.
using RegionAlias = std::pair<unsigned, unsigned>;

/// Whether values of \p T may be operands and results of instructions: tensors of a static shape and a known element
/// type.
bool isKnownTensor(mlir::Type T);

/// Makes the instruction that \p Op is by itself, without a scope. Results that nobody reads are left out; \p IdOf says
/// which values of the Program the others and the operands are.
runtime::Instruction loneInstruction(mlir::Operation *Op, llvm::function_ref<runtime::ValueId(mlir::Value)> IdOf);

/// The instruction of \p Fusion without its operands; see runtime/generated_call.h for its attributes.
runtime::Instruction regionInstruction(FusionOp Fusion, const codegen::GeneratedCall &Call,
                                       const std::vector<RegionAlias> &Aliases);

} // namespace mpc::compiler
