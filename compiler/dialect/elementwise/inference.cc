// Shape inference of element-wise operations on several tensors, data movement and reductions.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"

using namespace mlir;

namespace mpc {

#define MPC_INFER_BINARY(Class, Name)                                                                                  \
  InferredTypes Class::inferTypes(TypeRange Operands, DictionaryAttr) { return inferBroadcast(Operands, Name); }
MPC_INFER_BINARY(AddOp, "add")
MPC_INFER_BINARY(SubOp, "sub")
MPC_INFER_BINARY(MulOp, "mul")
MPC_INFER_BINARY(DivOp, "div")
MPC_INFER_BINARY(MaximumOp, "maximum")
#undef MPC_INFER_BINARY

InferredTypes ReduceSumOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferReduction(Operands, Dictionary, "reduce_sum");
}

InferredTypes ReduceMeanOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  return inferReduction(Operands, Dictionary, "reduce_mean");
}

InferredTypes DivGradOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "div_grad", {"dy", "y", "b"}));
  MPC_RETURN_IF_ERROR(expectShape("div_grad", "y", Types[1], Types[0].getShape()));
  MPC_ASSIGN_OR_RETURN(Result, broadcastShapes("div_grad", Types[0], Types[2]));
  MPC_RETURN_IF_ERROR(expectShape("div_grad", "dy", Types[0], Result));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, Types[2].getElementType())};
}

InferredTypes MaximumGradOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  return inferExtremumGrad(Operands, "maximum_grad");
}

InferredTypes SumNOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "sum_n", {"x", "inputs..."}));
  for (RankedTensorType Type : Types)
    MPC_RETURN_IF_ERROR(expectShape("sum_n", "every operand", Type, Types.front().getShape()));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Types.front().getShape(), promotedType(Types))};
}

InferredTypes EqualOp::inferTypes(TypeRange Operands, DictionaryAttr) { return inferComparison(Operands, "equal"); }

InferredTypes SelectOp::inferTypes(TypeRange Operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "select", {"condition", "a", "b"}));
  if (Types[1] != Types[2])
    return inferenceError("select chooses between two tensors of one type, got {0} and {1}", typeText(Types[1]),
                          typeText(Types[2]));
  if (Types[0].getRank() != 0)
    MPC_RETURN_IF_ERROR(expectShape("select", "a scalar condition or one", Types[0], Types[1].getShape()));
  return SmallVector<RankedTensorType>{Types[1]};
}

InferredTypes DropoutOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "dropout", {"x", "seed", "step"}));
  MPC_RETURN_IF_ERROR(expectShape("dropout", "seed", Types[1], {}));
  MPC_RETURN_IF_ERROR(expectShape("dropout", "step", Types[2], {}));
  double P = toAttributes(Dictionary).GetDouble("p");
  if (!(P >= 0 && P < 1))
    return inferenceError("dropout takes a probability p in [0, 1), got {0}", P);
  return SmallVector<RankedTensorType>{Types[0]};
}

InferredTypes ConstantOp::inferTypes(TypeRange, DictionaryAttr Dictionary) {
  auto Value = dyn_cast_or_null<ElementsAttr>(Dictionary.get("value"));
  auto Type = Value ? dyn_cast<RankedTensorType>(Value.getShapedType()) : RankedTensorType();
  if (!Type)
    return inferenceError("constant takes a dense tensor value");
  return SmallVector<RankedTensorType>{Type};
}

static bool hasEmptyAxis(ArrayRef<int64_t> Extents) {
  return llvm::any_of(Extents, [](int64_t Extent) { return Extent < 1; });
}

InferredTypes RandomOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "random", {"seed"}));
  MPC_RETURN_IF_ERROR(expectShape("random", "seed", Types[0], {}));
  std::vector<int64_t> Extents = toAttributes(Dictionary).GetInts("shape");
  if (hasEmptyAxis(Extents))
    return inferenceError("random takes a shape of extents >= 1, got {0}", shapeText(Extents));
  return SmallVector<RankedTensorType>{RankedTensorType::get(Extents, Float32Type::get(Types[0].getContext()))};
}

InferredTypes ReshapeOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "reshape", {"x"}));
  std::vector<int64_t> Extents = toAttributes(Dictionary).GetInts("shape");
  if (hasEmptyAxis(Extents) || NumElements(Extents) != Types[0].getNumElements())
    return inferenceError("reshape to {0} needs {1} elements, got {2} with {3}", shapeText(Extents),
                          NumElements(Extents), typeText(Types[0]), Types[0].getNumElements());
  return SmallVector<RankedTensorType>{RankedTensorType::get(Extents, Types[0].getElementType())};
}

InferredTypes TransposeOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "transpose", {"x"}));
  std::vector<int64_t> Permutation = toAttributes(Dictionary).GetInts("permutation");
  ArrayRef<int64_t> Extents = Types[0].getShape();
  SmallVector<bool> Seen(Extents.size(), false);
  SmallVector<int64_t> Result;
  for (int64_t Axis : Permutation) {
    if (Axis < 0 || Axis >= int64_t(Extents.size()) || Seen[Axis])
      return inferenceError("transpose permutation must name each axis of {0} once, got axis {1}", typeText(Types[0]),
                            Axis);
    Seen[Axis] = true;
    Result.push_back(Extents[Axis]);
  }
  if (Result.size() != Extents.size())
    return inferenceError("transpose permutation has {0} axes, {1} has {2}", Result.size(), typeText(Types[0]),
                          Extents.size());
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, Types[0].getElementType())};
}

InferredTypes BroadcastToOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "broadcast_to", {"x"}));
  std::vector<int64_t> Extents = toAttributes(Dictionary).GetInts("shape");
  auto Target = RankedTensorType::get(Extents, Types[0].getElementType());
  MPC_ASSIGN_OR_RETURN(Result, broadcastShapes("broadcast_to", Types[0], Target));
  if (ArrayRef<int64_t>(Result) != ArrayRef<int64_t>(Extents))
    return inferenceError("broadcast_to cannot stretch {0} to {1}", typeText(Types[0]), shapeText(Extents));
  return SmallVector<RankedTensorType>{Target};
}

InferredTypes ArgmaxOp::inferTypes(TypeRange Operands, DictionaryAttr Dictionary) {
  MPC_ASSIGN_OR_RETURN(Types, operandTypes(Operands, "argmax", {"x"}));
  MPC_ASSIGN_OR_RETURN(Axis, normalAxis("argmax", toAttributes(Dictionary).GetInt("axis", -1), Types[0].getRank()));
  SmallVector<int64_t> Result(Types[0].getShape());
  Result.erase(Result.begin() + Axis);
  return SmallVector<RankedTensorType>{RankedTensorType::get(Result, IntegerType::get(Types[0].getContext(), 32))};
}

} // namespace mpc
