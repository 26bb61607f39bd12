// Shape inference of element-wise operations on several tensors, data movement and reductions, where their definitions
// name no rule.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/known_attributes.h"

using namespace mlir;

namespace mpc {

InferredTypes ReduceSumOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferReduction(operands, dictionary, operandsOf<ReduceSumOp>());
}

InferredTypes ReduceMeanOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferReduction(operands, dictionary, operandsOf<ReduceMeanOp>());
}

InferredTypes DivGradOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<DivGradOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "y", types[1], types[0].getShape()));
  MPC_ASSIGN_OR_RETURN(result, broadcastShapes(mnemonic(), types[0], types[2]));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dy", types[0], result));
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, types[2].getElementType())};
}

InferredTypes SumNOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SumNOp>(operands));
  if (types.empty())
    return inferenceError("{0} expects at least one operand", mnemonic());
  for (RankedTensorType type : types)
    MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "every operand", type, types.front().getShape()));
  return SmallVector<RankedTensorType>{RankedTensorType::get(types.front().getShape(), promotedType(types))};
}

InferredTypes SelectOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SelectOp>(operands));
  if (types[1] != types[2])
    return inferenceError("{0} chooses between two tensors of one type, got {1} and {2}", mnemonic(),
                          typeText(types[1]), typeText(types[2]));
  if (types[0].getRank() != 0)
    MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "a scalar condition or one", types[0], types[1].getShape()));
  return SmallVector<RankedTensorType>{types[1]};
}

InferredTypes DropoutOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<DropoutOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "seed", types[1], {}));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "step", types[2], {}));
  double p = toAttributes(dictionary).GetDouble("p");
  if (!(p >= 0 && p < 1))
    return inferenceError("{0} takes a probability p in [0, 1), got {1}", mnemonic(), p);
  return SmallVector<RankedTensorType>{types[0]};
}

InferredTypes ConstantOp::inferTypes(TypeRange, DictionaryAttr dictionary) {
  auto value = dyn_cast_or_null<ElementsAttr>(dictionary.get("value"));
  auto type = value ? dyn_cast<RankedTensorType>(value.getShapedType()) : RankedTensorType();
  if (!type)
    return inferenceError("{0} takes a dense tensor value", mnemonic());
  return SmallVector<RankedTensorType>{type};
}

static bool hasEmptyAxis(ArrayRef<int64_t> extents) {
  return llvm::any_of(extents, [](int64_t extent) { return extent < 1; });
}

InferredTypes RandomOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<RandomOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "seed", types[0], {}));
  std::vector<int64_t> extents = toAttributes(dictionary).GetInts("shape");
  if (hasEmptyAxis(extents))
    return inferenceError("{0} takes a shape of extents >= 1, got {1}", mnemonic(), shapeText(extents));
  return SmallVector<RankedTensorType>{RankedTensorType::get(extents, Float32Type::get(types[0].getContext()))};
}

InferredTypes IotaOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_RETURN_IF_ERROR(operandTypes<IotaOp>(operands).takeError());
  std::vector<int64_t> extents = toAttributes(dictionary).GetInts("shape");
  if (hasEmptyAxis(extents) || isTooLarge(extents))
    return inferenceError("{0} takes a shape of extents >= 1 with at most 2^47 elements, got {1}", mnemonic(),
                          shapeText(extents));
  int64_t axis = toAttributes(dictionary).Get(attribute::kLastAxis);
  if (auto known = normalAxis(mnemonic(), axis, int64_t(extents.size())); !known)
    return known.takeError();
  // The operation's own result says which type it has.
  return SmallVector<RankedTensorType>{RankedTensorType::get(extents, IntegerType::get(dictionary.getContext(), 32))};
}

InferredTypes ReshapeOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ReshapeOp>(operands));
  std::vector<int64_t> extents = toAttributes(dictionary).GetInts("shape");
  if (hasEmptyAxis(extents) || NumElements(extents) != types[0].getNumElements())
    return inferenceError("{0} to {1} needs {2} elements, got {3} with {4}", mnemonic(), shapeText(extents),
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
      return inferenceError("{0} permutation must name each axis of {1} once, got axis {2}", mnemonic(),
                            typeText(types[0]), axis);
    seen[axis] = true;
    result.push_back(extents[axis]);
  }
  if (result.size() != extents.size())
    return inferenceError("{0} permutation has {1} axes, {2} has {3}", mnemonic(), result.size(), typeText(types[0]),
                          extents.size());
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, types[0].getElementType())};
}

InferredTypes BroadcastToOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<BroadcastToOp>(operands));
  std::vector<int64_t> extents = toAttributes(dictionary).GetInts("shape");
  auto target = RankedTensorType::get(extents, types[0].getElementType());
  MPC_ASSIGN_OR_RETURN(result, broadcastShapes(mnemonic(), types[0], target));
  if (ArrayRef<int64_t>(result) != ArrayRef<int64_t>(extents))
    return inferenceError("{0} cannot stretch {1} to {2}", mnemonic(), typeText(types[0]), shapeText(extents));
  return SmallVector<RankedTensorType>{target};
}

InferredTypes ArgmaxOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ArgmaxOp>(operands));
  MPC_ASSIGN_OR_RETURN(axis,
                       normalAxis(mnemonic(), toAttributes(dictionary).Get(attribute::kLastAxis), types[0].getRank()));
  SmallVector<int64_t> result(types[0].getShape());
  result.erase(result.begin() + axis);
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, IntegerType::get(types[0].getContext(), 32))};
}

} // namespace mpc
