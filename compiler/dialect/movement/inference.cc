// Shape inference of operations that move parts of tensors and look values up. Others take maxima, minima and products
// over axes, or go along an axis: running sums and orders.
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/known_attributes.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace mpc {

InferredTypes ConcatOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ConcatOp>(operands));
  if (types.empty())
    return inferenceError("{0} expects at least one operand", mnemonic());
  for (RankedTensorType type : types)
    if (type.getElementType() != types.front().getElementType())
      return inferenceError("{0} needs operands of one element type, got {1} and {2}; cast changes it", mnemonic(),
                            typeText(types.front()), typeText(type));
  SmallVector<int64_t> result(types.front().getShape());
  MPC_ASSIGN_OR_RETURN(axis, normalAxis(mnemonic(), toAttributes(dictionary).GetInt("axis", 0), result.size()));
  result[axis] = 0;
  for (RankedTensorType type : types) {
    bool agrees = type.getRank() == int64_t(result.size());
    for (int64_t other = 0; agrees && other < type.getRank(); ++other)
      agrees = other == axis || type.getDimSize(other) == result[other];
    if (!agrees)
      return inferenceError("{0} along axis {1} needs operands that agree on every other axis, got {2} and {3}",
                            mnemonic(), axis, typeText(types.front()), typeText(type));
    result[axis] += type.getDimSize(axis);
  }
  return SmallVector<RankedTensorType>{withShape(types.front(), result)};
}

// Requires that a tensor of \p element holds \p value, where it holds no floating numbers.
static llvm::Error checkHoldsValue(StringRef op, Type element, double value) {
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer)
    return llvm::Error::success();
  bool isTruth = integer.getWidth() == 1;
  double limit = std::ldexp(1.0, int(integer.getWidth()) - 1), low = isTruth ? 0 : -limit, end = isTruth ? 2 : limit;
  if (value >= low && value < end && value == std::trunc(value))
    return llvm::Error::success();
  return inferenceError("{0} of {1} takes a value that {1} holds, {2}, got {3}", op, element,
                        isTruth ? "0 or 1" : "a whole number in its range", value);
}

// One value of `name` an axis of X.
static llvm::Error checkOneAnAxis(StringRef op, StringRef name, RankedTensorType x, ArrayRef<int64_t> values) {
  if (int64_t(values.size()) == x.getRank())
    return llvm::Error::success();
  return inferenceError("{0} takes one of {1} an axis: {2} has {3}, got {4}", op, name, typeText(x), x.getRank(),
                        values.size());
}

InferredTypes SliceOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SliceOp>(operands));
  std::vector<int64_t> starts = toAttributes(dictionary).GetInts("starts");
  std::vector<int64_t> sizes = toAttributes(dictionary).GetInts("sizes");
  MPC_RETURN_IF_ERROR(checkOneAnAxis(mnemonic(), "starts", types[0], starts));
  MPC_RETURN_IF_ERROR(checkOneAnAxis(mnemonic(), "sizes", types[0], sizes));
  for (auto [axis, extent, start, size] : llvm::enumerate(types[0].getShape(), starts, sizes))
    if (start < 0 || size < 1 || start > extent - size)
      return inferenceError("{0} of axis {1} takes {2} elements from {3} on, but {4} has elements 0 to {5} there",
                            mnemonic(), axis, size, start, typeText(types[0]), extent - 1);
  return SmallVector<RankedTensorType>{RankedTensorType::get(sizes, types[0].getElementType())};
}

InferredTypes SplitOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SplitOp>(operands));
  MPC_ASSIGN_OR_RETURN(axis, normalAxis(mnemonic(), toAttributes(dictionary).GetInt("axis", 0), types[0].getRank()));
  std::vector<int64_t> sizes = toAttributes(dictionary).GetInts("sizes");
  int64_t extent = types[0].getDimSize(axis), rest = extent;
  for (int64_t size : sizes) {
    if (size < 1)
      return inferenceError("{0} takes sizes >= 1, got {1}", mnemonic(), size);
    rest = size > rest ? -1 : rest - size;
    if (rest < 0)
      break;
  }
  if (rest != 0 || sizes.empty())
    return inferenceError("{0} sizes must add up to {1}, the extent of axis {2} of {3}; got {4}", mnemonic(), extent,
                          axis, typeText(types[0]), shapeText(sizes));
  SmallVector<RankedTensorType> pieces;
  for (int64_t size : sizes) {
    SmallVector<int64_t> piece(types[0].getShape());
    piece[axis] = size;
    pieces.push_back(RankedTensorType::get(piece, types[0].getElementType()));
  }
  return pieces;
}

InferredTypes PadOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<PadOp>(operands));
  std::vector<int64_t> low = toAttributes(dictionary).GetInts("low");
  std::vector<int64_t> high = toAttributes(dictionary).GetInts("high");
  MPC_RETURN_IF_ERROR(checkOneAnAxis(mnemonic(), "low", types[0], low));
  MPC_RETURN_IF_ERROR(checkOneAnAxis(mnemonic(), "high", types[0], high));
  MPC_RETURN_IF_ERROR(
      checkHoldsValue(mnemonic(), types[0].getElementType(), toAttributes(dictionary).GetDouble("value", 0)));
  constexpr int64_t limit = int64_t(1) << 47;
  SmallVector<int64_t> result;
  for (auto [extent, before, after] : llvm::zip_equal(types[0].getShape(), low, high)) {
    if (before < 0 || after < 0 || before > limit || after > limit)
      return inferenceError("{0} takes widths in [0, 2^47], got low {1} and high {2}; slice cuts", mnemonic(), before,
                            after);
    result.push_back(extent + before + after);
  }
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, types[0].getElementType())};
}

InferredTypes GatherOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<GatherOp>(operands));
  if (types[0].getRank() < 1)
    return inferenceError("{0} takes a table of rank 1 or more, got {1}", mnemonic(), typeText(types[0]));
  if (!isa<IntegerType>(types[1].getElementType()))
    return inferenceError("{0} takes indices of i32 or i64, got {1}", mnemonic(), typeText(types[1]));
  SmallVector<int64_t> result(types[1].getShape());
  llvm::append_range(result, types[0].getShape().drop_front());
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, types[0].getElementType())};
}

InferredTypes GatherGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<GatherGradOp>(operands));
  ArrayRef<int64_t> dy = types[0].getShape(), indices = types[1].getShape();
  if (dy.size() < indices.size() || dy.take_front(indices.size()) != indices)
    return inferenceError("{0} expects dy to begin with the shape of the indices, {1}, got {2}", mnemonic(),
                          shapeText(indices), typeText(types[0]));
  int64_t rows = toAttributes(dictionary).GetInt("rows");
  if (rows < 1)
    return inferenceError("{0} takes rows >= 1, got {1}", mnemonic(), rows);
  SmallVector<int64_t> result{rows};
  llvm::append_range(result, dy.drop_front(indices.size()));
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, types[0].getElementType())};
}

InferredTypes ScatterAddOp::inferTypes(TypeRange operands, DictionaryAttr) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ScatterAddOp>(operands));
  if (types[0].getRank() < 1)
    return inferenceError("{0} takes x of rank 1 or more, got {1}", mnemonic(), typeText(types[0]));
  if (!isa<IntegerType>(types[1].getElementType()))
    return inferenceError("{0} takes indices of i32 or i64, got {1}", mnemonic(), typeText(types[1]));
  SmallVector<int64_t> updates(types[1].getShape());
  llvm::append_range(updates, types[0].getShape().drop_front());
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "updates", types[2], updates));
  return SmallVector<RankedTensorType>{RankedTensorType::get(types[0].getShape(), promotedType({types[0], types[2]}))};
}

InferredTypes OneHotOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<OneHotOp>(operands));
  if (!isa<IntegerType>(types[0].getElementType()))
    return inferenceError("{0} takes indices of i32 or i64, got {1}", mnemonic(), typeText(types[0]));
  int64_t depth = toAttributes(dictionary).GetInt("depth");
  if (depth < 1)
    return inferenceError("{0} takes a depth >= 1, got {1}", mnemonic(), depth);
  SmallVector<int64_t> result(types[0].getShape());
  result.push_back(depth);
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, Float32Type::get(types[0].getContext()))};
}

InferredTypes ReduceMaxOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferReduction(operands, dictionary, operandsOf<ReduceMaxOp>());
}

InferredTypes ReduceMaxGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ReduceMaxGradOp>(operands));
  MPC_ASSIGN_OR_RETURN(reduced, inferReduction(types[1], dictionary, mnemonic()));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dy", types[0], reduced.front().getShape()));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "y", types[2], reduced.front().getShape()));
  return SmallVector<RankedTensorType>{types[1]};
}

InferredTypes ReduceMinOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferReduction(operands, dictionary, operandsOf<ReduceMinOp>());
}

InferredTypes ReduceProdOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  return inferReduction(operands, dictionary, operandsOf<ReduceProdOp>());
}

InferredTypes ReduceProdGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<ReduceProdGradOp>(operands));
  MPC_ASSIGN_OR_RETURN(reduced, inferReduction(types[1], dictionary, mnemonic()));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "dy", types[0], reduced.front().getShape()));
  return SmallVector<RankedTensorType>{types[1]};
}

//===-- Along an axis --------------------------------------------------------------------------------------------===//

// The attribute `axis`, counted from the front.
static llvm::Expected<int64_t> axisOf(StringRef op, RankedTensorType x, DictionaryAttr dictionary) {
  return normalAxis(op, toAttributes(dictionary).Get(attribute::kLastAxis), x.getRank());
}

InferredTypes CumsumOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<CumsumOp>(operands));
  if (auto axis = axisOf(mnemonic(), types[0], dictionary); !axis)
    return axis.takeError();
  return types;
}

// Values and indices of the first \p count elements in the order of \p op.
static InferredTypes inferOrder(StringRef op, RankedTensorType x, int64_t axis, int64_t count) {
  if (!llvm::isInt<32>(x.getDimSize(axis)))
    return inferenceError("{0} orders at most 2^31 - 1 elements, whose indices i32 holds; axis {1} of {2} has more", op,
                          axis, typeText(x));
  SmallVector<int64_t> result(x.getShape());
  result[axis] = count;
  return SmallVector<RankedTensorType>{withShape(x, result),
                                       RankedTensorType::get(result, IntegerType::get(x.getContext(), 32))};
}

InferredTypes SortOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<SortOp>(operands));
  MPC_ASSIGN_OR_RETURN(axis, axisOf(mnemonic(), types[0], dictionary));
  return inferOrder(mnemonic(), types[0], axis, types[0].getDimSize(axis));
}

InferredTypes TopKOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<TopKOp>(operands));
  MPC_ASSIGN_OR_RETURN(axis, axisOf(mnemonic(), types[0], dictionary));
  int64_t count = toAttributes(dictionary).GetInt("k"), extent = types[0].getDimSize(axis);
  if (count < 1 || count > extent)
    return inferenceError("{0} takes k in [1, {1}], the extent of axis {2} of {3}, got {4}", mnemonic(), extent, axis,
                          typeText(types[0]), count);
  return inferOrder(mnemonic(), types[0], axis, count);
}

InferredTypes TopKGradOp::inferTypes(TypeRange operands, DictionaryAttr dictionary) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes<TopKGradOp>(operands));
  MPC_RETURN_IF_ERROR(expectShape(mnemonic(), "indices", types[1], types[0].getShape()));
  MPC_ASSIGN_OR_RETURN(axis, axisOf(mnemonic(), types[0], dictionary));
  int64_t extent = toAttributes(dictionary).GetInt("extent");
  if (extent < types[0].getDimSize(axis))
    return inferenceError("{0} takes an extent of {1} or more, that of axis {2} of {3}, got {4}", mnemonic(),
                          types[0].getDimSize(axis), axis, typeText(types[0]), extent);
  SmallVector<int64_t> result(types[0].getShape());
  result[axis] = extent;
  return SmallVector<RankedTensorType>{withShape(types[0], result)};
}

} // namespace mpc
