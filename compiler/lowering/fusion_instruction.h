// Makes instructions of operations and regions.
#pragma once

#include "compiler/codegen/code_generator.h"
#include "runtime/program.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <utility>
#include <vector>

namespace mpc::compiler {

/// An output of a region and the input in whose storage it is written.
using FusionAlias = std::pair<unsigned, unsigned>;

/// Whether values of \p t may be operands and results of instructions: tensors of a static shape and a known element
/// type.
bool isKnownTensor(mlir::Type t);

/// Makes the instruction that \p op is by itself, without a scope. Results that nobody reads are left out; \p idOf says
/// which values of the Program the others and the operands are.
runtime::Instruction loneInstruction(mlir::Operation *op, llvm::function_ref<runtime::ValueId(mlir::Value)> idOf);

/// The instruction of \p fusion without its operands; see runtime/generated_call.h for its attributes.
runtime::Instruction fusionInstruction(FusionOp fusion, const codegen::GeneratedCall &call,
                                       const std::vector<FusionAlias> &aliases);

} // namespace mpc::compiler
