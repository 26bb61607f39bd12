// The mpc dialect: operations, attributes, interfaces.
#pragma once

#include "compiler/dialect/amp_class.h"
#include "compiler/dialect/operation_properties.h"
#include "compiler/dialect/word_attributes.h"
#include "compiler/element/iteration_space.h"
#include "kernels/known_attributes.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/role.h"
#include "llvm/Support/Error.h"

namespace mpc::codegen {

class ElementContext;

/// The iteration space of an operation whose results have one shape and whose operands are broadcast to it. Errors: an
/// operand that is neither a row, a column, a single value nor the whole.
llvm::Expected<OperationSpace> elementwiseSpace(mlir::Operation *op);

} // namespace mpc::codegen

namespace mpc {

/// The name of a role, as the IR and messages have it.
inline llvm::StringRef roleName(Role known) { return {RoleName(known).data(), RoleName(known).size()}; }
/// Parses the name of a role; an error says which there are.
llvm::FailureOr<Role> parseRole(mlir::AsmParser &parser);

/// Compares inferred shapes with the result shapes of \p op; emits what differs.
llvm::LogicalResult verifyShapes(mlir::Operation *op,
                                 llvm::Expected<llvm::SmallVector<mlir::RankedTensorType>> inferred);

/// The verifier of every operation that infers its shapes.
template <typename ConcreteOp> llvm::LogicalResult verifyInferredShapes(mlir::Operation *op) {
  return verifyShapes(op, ConcreteOp::inferTypes(op->getOperandTypes(), op->getAttrDictionary()));
}

/// Whether \p result is the low copy that an optimizer writes beside its parameter: it has no state operand.
bool isLowCopy(mlir::OpResult result);

/// The trait of operations that update state. Their first operands are state, in the order of the results; only a
/// low copy, the last result, has no such operand. The optional last operand is a predicate. Where it is false, every
/// result equals its state operand.
template <typename ConcreteOp> class StateUpdate : public mlir::OpTrait::TraitBase<ConcreteOp, StateUpdate> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) {
    for (mlir::OpResult result : op->getResults()) {
      if (isLowCopy(result))
        continue;
      unsigned index = result.getResultNumber();
      if (index >= op->getNumOperands() || op->getOperand(index).getType() != result.getType())
        return op->emitOpError() << "result " << index << " must have the type of state operand " << index;
    }
    return llvm::success();
  }
};

} // namespace mpc

// The dialect's accessors return its attributes, so these come first.
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/mpc_attributes.h.inc"

#include "compiler/dialect/mpc_dialect.h.inc"

#include "compiler/dialect/mpc_interfaces.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/mpc_ops.h.inc"
