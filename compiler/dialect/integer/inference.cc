// Shape inference of integer arithmetic on two tensors.
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

// Inference comes before the verifier of operand types: a user reads this.
static InferredTypes inferIntegers(TypeRange operands, const OperandNames &given) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  for (RankedTensorType type : types)
    if (!type.getElementType().isInteger(32) && !type.getElementType().isInteger(64))
      return inferenceError("{0} takes integers, i32 or i64, got {1}", given.op, typeText(type));
  Type element = types[0].getElementType();
  if (types[1].getElementType() != element)
    return inferenceError("{0} takes operands of one type, got {1} and {2}; cast changes it", given.op,
                          typeText(types[0]), typeText(types[1]));
  MPC_ASSIGN_OR_RETURN(result, broadcastShapes(given.op, types[0], types[1]));
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, element)};
}

#define MPC_INFER(Class)                                                                                               \
  InferredTypes Class::inferTypes(TypeRange operands, DictionaryAttr) {                                                \
    return inferIntegers(operands, operandsOf<Class>());                                                               \
  }
MPC_INFER(IntAddOp)
MPC_INFER(IntSubOp)
MPC_INFER(IntMulOp)
MPC_INFER(IntFloorDivOp)
MPC_INFER(IntModOp)
MPC_INFER(IntMaximumOp)
MPC_INFER(IntMinimumOp)
#undef MPC_INFER

} // namespace mpc
