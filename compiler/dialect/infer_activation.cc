// Shape inference of activation functions and other element-wise operations on one tensor.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

#define MPC_INFER_UNARY(Class, Name)                                                                                   \
  InferredTypes Class::inferTypes(TypeRange Operands, DictionaryAttr) { return inferSame(Operands, Name, {"x"}); }
MPC_INFER_UNARY(ReluOp, "relu")
MPC_INFER_UNARY(SigmoidOp, "sigmoid")
MPC_INFER_UNARY(TanhOp, "tanh")
MPC_INFER_UNARY(ExpOp, "exp")
MPC_INFER_UNARY(LogOp, "log")
MPC_INFER_UNARY(SqrtOp, "sqrt")
MPC_INFER_UNARY(NegOp, "neg")
MPC_INFER_UNARY(AddScalarOp, "add_scalar")
MPC_INFER_UNARY(MulScalarOp, "mul_scalar")
MPC_INFER_UNARY(StopGradientOp, "stop_gradient")
MPC_INFER_UNARY(AbsOp, "abs")
MPC_INFER_UNARY(FloorOp, "floor")
MPC_INFER_UNARY(SquareOp, "square")
MPC_INFER_UNARY(Log1pOp, "log1p")
MPC_INFER_UNARY(SinOp, "sin")
MPC_INFER_UNARY(CosOp, "cos")
MPC_INFER_UNARY(SiluOp, "silu")
MPC_INFER_UNARY(LeakyReluOp, "leaky_relu")
MPC_INFER_UNARY(PowOp, "pow")
MPC_INFER_UNARY(ClampOp, "clamp")
#undef MPC_INFER_UNARY

// Saved is what the derivative is computed of: the operand x or the result y.
#define MPC_INFER_UNARY_GRAD(Class, Name, Saved)                                                                       \
  InferredTypes Class::inferTypes(TypeRange Operands, DictionaryAttr) {                                                \
    return inferAllSameShape(Operands, Name, {"dy", Saved});                                                           \
  }
MPC_INFER_UNARY_GRAD(ReluGradOp, "relu_grad", "y")
MPC_INFER_UNARY_GRAD(SigmoidGradOp, "sigmoid_grad", "y")
MPC_INFER_UNARY_GRAD(TanhGradOp, "tanh_grad", "y")
MPC_INFER_UNARY_GRAD(SqrtGradOp, "sqrt_grad", "y")
MPC_INFER_UNARY_GRAD(AbsGradOp, "abs_grad", "x")
MPC_INFER_UNARY_GRAD(SquareGradOp, "square_grad", "x")
MPC_INFER_UNARY_GRAD(Log1pGradOp, "log1p_grad", "x")
MPC_INFER_UNARY_GRAD(SinGradOp, "sin_grad", "x")
MPC_INFER_UNARY_GRAD(CosGradOp, "cos_grad", "x")
MPC_INFER_UNARY_GRAD(SiluGradOp, "silu_grad", "x")
MPC_INFER_UNARY_GRAD(LeakyReluGradOp, "leaky_relu_grad", "x")
MPC_INFER_UNARY_GRAD(PowGradOp, "pow_grad", "x")
MPC_INFER_UNARY_GRAD(ClampGradOp, "clamp_grad", "x")
#undef MPC_INFER_UNARY_GRAD

// Inference comes before the verifier of the attribute: a user reads this.
static llvm::Error checkGeluForm(StringRef Op, DictionaryAttr Dictionary) {
  std::string Form = toAttributes(Dictionary).GetString("approximate", "none");
  if (Form == "none" || Form == "tanh")
    return llvm::Error::success();
  return inferenceError("{0} takes approximate \"none\" or \"tanh\", got \"{1}\"", Op, Form);
}

InferredTypes GeluOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_RETURN_IF_ERROR(checkGeluForm("gelu", Dictionary));
  return inferSame(Operands, "gelu", {"x"});
}

InferredTypes GeluGradOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_RETURN_IF_ERROR(checkGeluForm("gelu_grad", Dictionary));
  return inferAllSameShape(Operands, "gelu_grad", {"dy", "x"});
}

// One slope for all, or one a channel.
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
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "minimum_grad", {"dy", "a", "b"}));
  MPC_ASSIGN_OR_RETURN(Result, broadcastShapes("minimum_grad", Types[1], Types[2]));
  MPC_RETURN_IF_ERROR(expectShape("minimum_grad", "dy", Types[0], Result));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, Types[1].getElementType()),
                                       RankedTensorType::get(Result, Types[2].getElementType())};
}

static InferredTypes inferComparison(TypeRange Operands, StringRef Op) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, Op, {"a", "b"}));
  MPC_ASSIGN_OR_RETURN(Result, broadcastShapes(Op, Types[0], Types[1]));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, IntegerType::get(Types[0].getContext(), 1))};
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
