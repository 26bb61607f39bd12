// Shape inference of activation functions and other element-wise operations, where their definitions do not list alike
// operands.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

// Inference comes before the verifier of the attribute: a user reads this.
static llvm::Error checkGeluForm(StringRef Op, DictionaryAttr Dictionary) {
  std::string Form = toAttributes(Dictionary).GetString("approximate", "none");
  if (Form == "none" || Form == "tanh")
    return llvm::Error::success();
  return inferenceError("{0} takes approximate \"none\" or \"tanh\", got \"{1}\"", Op, Form);
}

InferredTypes GeluOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_RETURN_IF_ERROR(checkGeluForm("gelu", Dictionary));
  return inferAllSameShape(Operands, "gelu", {"x"});
}

InferredTypes GeluGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_RETURN_IF_ERROR(checkGeluForm("gelu_grad", Dictionary));
  return inferAllSameShape(Operands, "gelu_grad", {"dy", "x"});
}

// Requires one slope for all elements, or one for each channel.
static llvm::Error checkSlopes(StringRef Op, RankedTensorType X, RankedTensorType Alpha, DictionaryAttr Dictionary) {
  if (Alpha.getRank() == 1 && Alpha.getDimSize(0) == 1)
    return llvm::Error::success();
  bool ChannelsLast = X.getRank() == 4 && toAttributes(Dictionary).GetString("data_format", "NCHW") == "NHWC";
  int64_t Axis = ChannelsLast ? 3 : 1;
  if (X.getRank() <= Axis)
    return inferenceError("{0} takes alpha of shape 1 for x of rank {1}, got {2}: there is no channel axis", Op,
                          X.getRank(), typeText(Alpha));
  if (Alpha.getRank() == 1 && Alpha.getDimSize(0) == X.getDimSize(Axis))
    return llvm::Error::success();
  return inferenceError("{0} expects alpha of shape {1}, one slope a channel of axis {2}, or 1, got {3}", Op,
                        X.getDimSize(Axis), Axis, typeText(Alpha));
}

InferredTypes PreluOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "prelu", {"x", "alpha"}));
  MPC_RETURN_IF_ERROR(checkSlopes("prelu", Types[0], Types[1], Dictionary));
  return SmallVector<RankedTensorType>{Types[0]};
}

InferredTypes PreluGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "prelu_grad", {"dy", "x", "alpha"}));
  MPC_RETURN_IF_ERROR(expectShape("prelu_grad", "dy", Types[0], Types[1].getShape()));
  MPC_RETURN_IF_ERROR(checkSlopes("prelu_grad", Types[1], Types[2], Dictionary));
  return SmallVector<RankedTensorType>{Types[1], Types[2]};
}

InferredTypes MinimumOp::inferTypes(TypeRange Operands, DictionaryAttr) { return inferBroadcast(Operands, "minimum"); }

InferredTypes MinimumGradOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  return inferExtremumGrad(Operands, "minimum_grad");
}

InferredTypes GreaterOp::inferTypes(TypeRange Operands, DictionaryAttr) { return inferComparison(Operands, "greater"); }
InferredTypes LessOp::inferTypes(TypeRange Operands, DictionaryAttr) { return inferComparison(Operands, "less"); }

InferredTypes WhereOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "where", {"condition", "a", "b"}));
  if (!Types[0].getElementType().isInteger(1))
    return inferenceError("where takes a condition of i1, got {0}; compare with equal, greater or less",
                          typeText(Types[0]));
  Type Element = promotedType({Types[1], Types[2]});
  MPC_ASSIGN_OR_RETURN(Chosen, broadcastShapes("where", Types[1], Types[2]));
  MPC_ASSIGN_OR_RETURN(Result, broadcastShapes("where", Types[0], RankedTensorType::get(Chosen, Element)));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, Element)};
}

} // namespace mpc
