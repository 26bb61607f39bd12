// Shape inference of activation functions and other element-wise operations, where their definitions name no rule.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/known_attributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mpc {

// Inference comes before the verifier of the attribute, so a word that the enum lacks is still a string here. A user
// reads this.
static llvm::Error checkGeluForm(StringRef op, DictionaryAttr dictionary) {
  std::string form =
      toAttributes(dictionary)
          .GetString(attribute::kApproximate.name, std::string(NameOf(attribute::kApproximate.fallback)));
  if (ParseEnum<Approximation>(form))
    return llvm::Error::success();
  return inferenceError("{0} takes approximate \"{1}\", got \"{2}\"", op,
                        llvm::join(NamesOf<Approximation>(), "\" or \""), form);
}

InferredTypes GeluOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_RETURN_IF_ERROR(checkGeluForm(mnemonic(), dictionary));
  return inferAllSameShape(operands, operandsOf<GeluOp>());
}

InferredTypes GeluGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_RETURN_IF_ERROR(checkGeluForm(mnemonic(), dictionary));
  return inferAllSameShape(operands, operandsOf<GeluGradOp>());
}

// Requires one slope for all elements, or one for each channel.
static llvm::Error checkSlopes(StringRef op, RankedTensorType x, RankedTensorType alpha, DictionaryAttr dictionary) {
  if (alpha.getRank() == 1 && alpha.getDimSize(0) == 1)
    return llvm::Error::success();
  bool channelsLast = x.getRank() == 4 && toAttributes(dictionary).Get(attribute::kDataFormat) == DataFormat::kNHWC;
  int64_t axis = channelsLast ? 3 : 1;
  if (x.getRank() <= axis)
    return inferenceError("{0} takes alpha of shape 1 for x of rank {1}, got {2}: there is no channel axis", op,
                          x.getRank(), typeText(alpha));
  if (alpha.getRank() == 1 && alpha.getDimSize(0) == x.getDimSize(axis))
    return llvm::Error::success();
  return inferenceError("{0} expects alpha of shape {1}, one slope a channel of axis {2}, or 1, got {3}", op,
                        x.getDimSize(axis), axis, typeText(alpha));
}

InferredTypes PreluOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<PreluOp>(operands));
  MPC_RETURN_IF_ERROR(checkSlopes(mnemonic(), types[0], types[1], dictionary));
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes PreluGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<PreluGradOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dy", types[0], types[1].getShape()));
  MPC_RETURN_IF_ERROR(checkSlopes(mnemonic(), types[1], types[2], dictionary));
  return SmallVector<RankedTensorType>{types[1], types[2]};
}

// Inference comes before the verifier of operand types: a user reads this.
static llvm::Error checkTruthValues(StringRef op, ArrayRef<RankedTensorType> types) {
  for (RankedTensorType type : types)
    if (!type.getElementType().isInteger(1))
      return inferenceError("{0} takes truth values of i1, got {1}; a comparison such as not_equal makes them", op,
                            typeText(type));
  return llvm::Error::success();
}

static InferredTypes inferLogical(TypeRange operands, const OperandNames &given) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  MPC_RETURN_IF_ERROR(checkTruthValues(given.op, types));
  return inferBroadcast(operands, given);
}

InferredTypes LogicalAndOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferLogical(operands, operandsOf<LogicalAndOp>());
}
InferredTypes LogicalOrOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferLogical(operands, operandsOf<LogicalOrOp>());
}
InferredTypes LogicalNotOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<LogicalNotOp>(operands));
  MPC_RETURN_IF_ERROR(checkTruthValues(mnemonic(), types));
  return types;
}

InferredTypes WhereOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<WhereOp>(operands));
  if (!types[0].getElementType().isInteger(1))
    return inferenceError("{0} takes a condition of i1, got {1}; compare with equal, greater or less", mnemonic(),
                          typeText(types[0]));
  Type element = promotedType({types[1], types[2]});
  bool areFloating = isa<FloatType>(types[1].getElementType()) && isa<FloatType>(types[2].getElementType());
  if (!areFloating && types[1].getElementType() != types[2].getElementType())
    return inferenceError("{0} chooses between floating tensors, or between two of one element type, got {1} and {2}; "
                          "cast changes it",
                          mnemonic(), typeText(types[1]), typeText(types[2]));
  MPC_ASSIGN_OR_RETURN(chosen, broadcastShapes(mnemonic(), types[1], types[2]));
  MPC_ASSIGN_OR_RETURN(result, broadcastShapes(mnemonic(), types[0], RankedTensorType::get(chosen, element)));
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, element)};
}

} // namespace mpc
