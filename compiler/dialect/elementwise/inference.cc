// Shape inference of element-wise operations on several tensors, data movement and reductions.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/known_attributes.h"

using namespace mlir;

namespace mpc {

InferredTypes AddOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferBroadcast(operands, operandsOf<AddOp>());
}

InferredTypes SubOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferBroadcast(operands, operandsOf<SubOp>());
}

InferredTypes MulOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferBroadcast(operands, operandsOf<MulOp>());
}

InferredTypes DivOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferBroadcast(operands, operandsOf<DivOp>());
}

InferredTypes MaximumOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferBroadcast(operands, operandsOf<MaximumOp>());
}

InferredTypes ReduceSumOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferReduction(operands, dictionary, operandsOf<ReduceSumOp>());
}

InferredTypes ReduceMeanOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferReduction(operands, dictionary, operandsOf<ReduceMeanOp>());
}

InferredTypes DivGradOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<DivGradOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape("div_grad", "y", types[1], types[0].getShape()));
  MPC_ASSIGN_OR_RETURN(result, broadcastShapes("div_grad", types[0], types[2]));
  MPC_RETURN_IF_ERROR(expectShape("div_grad", "dy", types[0], result));
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, types[2].getElementType())};
}

InferredTypes MaximumGradOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferExtremumGrad(operands, operandsOf<MaximumGradOp>());
}

InferredTypes SumNOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SumNOp>(operands));
  if (types.empty())
    return inferenceError("sum_n expects at least one operand");
  for (RankedTensorType type : types)
    MPC_RETURN_IF_ERROR(expectShape("sum_n", "every operand", type, types.front().getShape()));
  return SmallVector<RankedTensorType>{RankedTensorType::get(types.front().getShape(), promotedType(types))};
}

InferredTypes EqualOp::inferTypes(TypeRange operands, DictionaryAttr) {
  return inferComparison(operands, operandsOf<EqualOp>());
}

InferredTypes SelectOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SelectOp>(operands));
  if (types[1] != types[2])
    return inferenceError("select chooses between two tensors of one type, got {0} and {1}", typeText(types[1]),
                          typeText(types[2]));
  if (types[0].getRank() != 0)
    MPC_RETURN_IF_ERROR(expectShape("select", "a scalar condition or one", types[0], types[1].getShape()));
  return SmallVector<RankedTensorType>{types[1]};
}

InferredTypes DropoutOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<DropoutOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape("dropout", "seed", types[1], {}));
  MPC_RETURN_IF_ERROR(expectShape("dropout", "step", types[2], {}));
  double p = toAttributes(dictionary).GetDouble("p");
  if (!(p >= 0 && p < 1))
    return inferenceError("dropout takes a probability p in [0, 1), got {0}", p);
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes ConstantOp::inferTypes(TypeRange, DictionaryAttr dictionary) {
  auto value = dyn_cast_or_null<ElementsAttr>(dictionary.get("value"));
  auto type = value ? dyn_cast<RankedTensorType>(value.getShapedType()) : RankedTensorType();
  if (!type)
    return inferenceError("constant takes a dense tensor value");
  return SmallVector<RankedTensorType>{type};
}

static bool hasEmptyAxis(ArrayRef<int64_t> extents) {
  return llvm::any_of(extents, [](int64_t extent) { return extent < 1; });
}

InferredTypes RandomOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<RandomOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape("random", "seed", types[0], {}));
  std::vector<int64_t> extents = toAttributes(dictionary).GetInts("shape");
  if (hasEmptyAxis(extents))
    return inferenceError("random takes a shape of extents >= 1, got {0}", shapeText(extents));
  return SmallVector<RankedTensorType>{RankedTensorType::get(extents, Float32Type::get(types[0].getContext()))};
}

InferredTypes IotaOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_RETURN_IF_ERROR(operandTypes<IotaOp>(operands).takeError());
  std::vector<int64_t> extents = toAttributes(dictionary).GetInts("shape");
  if (hasEmptyAxis(extents) || isTooLarge(extents))
    return inferenceError("iota takes a shape of extents >= 1 with at most 2^47 elements, got {0}", shapeText(extents));
  int64_t axis = toAttributes(dictionary).Get(attribute::kLastAxis);
  if (auto known = normalAxis("iota", axis, int64_t(extents.size())); !known)
    return known.takeError();
  // The operation's own result says which type it has.
  return SmallVector<RankedTensorType>{RankedTensorType::get(extents, IntegerType::get(dictionary.getContext(), 32))};
}

InferredTypes ReshapeOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ReshapeOp>(operands));
  std::vector<int64_t> extents = toAttributes(dictionary).GetInts("shape");
  if (hasEmptyAxis(extents) || NumElements(extents) != types[0].getNumElements())
    return inferenceError("reshape to {0} needs {1} elements, got {2} with {3}", shapeText(extents),
                          NumElements(extents), typeText(types[0]), types[0].getNumElements());
  return SmallVector<RankedTensorType>{RankedTensorType::get(extents, types[0].getElementType())};
}

InferredTypes TransposeOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<TransposeOp>(operands));
  std::vector<int64_t> permutation = toAttributes(dictionary).GetInts("permutation");
  ArrayRef<int64_t> extents = types[0].getShape();
  SmallVector<bool> seen(extents.size(), false);
  SmallVector<int64_t> result;
  for (int64_t axis : permutation) {
    if (axis < 0 || axis >= int64_t(extents.size()) || seen[axis])
      return inferenceError("transpose permutation must name each axis of {0} once, got axis {1}", typeText(types[0]),
                            axis);
    seen[axis] = true;
    result.push_back(extents[axis]);
  }
  if (result.size() != extents.size())
    return inferenceError("transpose permutation has {0} axes, {1} has {2}", result.size(), typeText(types[0]),
                          extents.size());
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, types[0].getElementType())};
}

InferredTypes BroadcastToOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<BroadcastToOp>(operands));
  std::vector<int64_t> extents = toAttributes(dictionary).GetInts("shape");
  auto target = RankedTensorType::get(extents, types[0].getElementType());
  MPC_ASSIGN_OR_RETURN(result, broadcastShapes("broadcast_to", types[0], target));
  if (ArrayRef<int64_t>(result) != ArrayRef<int64_t>(extents))
    return inferenceError("broadcast_to cannot stretch {0} to {1}", typeText(types[0]), shapeText(extents));
  return SmallVector<RankedTensorType>{target};
}

InferredTypes ArgmaxOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ArgmaxOp>(operands));
  MPC_ASSIGN_OR_RETURN(axis,
                       normalAxis("argmax", toAttributes(dictionary).Get(attribute::kLastAxis), types[0].getRank()));
  SmallVector<int64_t> result(types[0].getShape());
  result.erase(result.begin() + axis);
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, IntegerType::get(types[0].getContext(), 32))};
}

} // namespace mpc
