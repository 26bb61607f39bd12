#include "compiler/dialect/inference_support.h"

#include "compiler/dialect/attribute_conversion.h"
#include "kernels/known_attributes.h"
#include "kernels/tensor_spec.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mpc {

std::string shapeText(ArrayRef<int64_t> dims) { return ShapeToString(Shape(dims.begin(), dims.end())); }

bool isTooLarge(ArrayRef<int64_t> dims) {
  constexpr int64_t maxElements = int64_t(1) << 47;
  // Where one extent is 0, strides over the others must not overflow either.
  Shape counted;
  llvm::copy_if(dims, std::back_inserter(counted), [](int64_t extent) { return extent != 0; });
  return NumElements(counted) > maxElements;
}

llvm::Expected<SmallVector<RankedTensorType>> operandTypes(TypeRange operands, const OperandNames &given) {
  const auto &[op, names] = given;
  size_t required =
      llvm::count_if(names, [](StringRef name) { return !name.ends_with("?") && !name.ends_with("..."); });
  bool variadic = !names.empty() && names.back().ends_with("...");
  if (operands.size() < required || (!variadic && operands.size() > names.size()))
    return inferenceError("{0} takes the operands ({1}), got {2} operands", op, llvm::join(names, ", "),
                          operands.size());
  SmallVector<RankedTensorType> types;
  for (Type operand : operands) {
    auto tensor = dyn_cast<RankedTensorType>(operand);
    if (!tensor || !tensor.hasStaticShape())
      return inferenceError("{0} takes statically shaped tensors, got {1}", op, typeText(operand));
    if (llvm::is_contained(tensor.getShape(), 0))
      return inferenceError("{0} takes tensors with at least one element, got {1}", op, typeText(operand));
    if (isTooLarge(tensor.getShape()))
      return inferenceError("{0}: {1} is too large: a tensor has at most 2^47 elements", op, typeText(operand));
    types.push_back(tensor);
  }
  return types;
}

Type promotedType(ArrayRef<RankedTensorType> types) {
  Type result = types.front().getElementType();
  for (RankedTensorType type : types.drop_front()) {
    if (type.getElementType() == result)
      continue;
    Builder b(result.getContext());
    bool isDouble = result.isF64() || type.getElementType().isF64();
    result = isDouble ? mlir::Type(b.getF64Type()) : mlir::Type(b.getF32Type());
  }
  return result;
}

llvm::Expected<std::pair<int64_t, int64_t>> productExtents(StringRef op, RankedTensorType a, RankedTensorType b,
                                                           const Attributes &values) {
  bool transposeA = values.GetBool("transpose_a"), transposeB = values.GetBool("transpose_b");
  int64_t rank = a.getRank();
  int64_t m = a.getDimSize(rank - 2 + transposeA), innerA = a.getDimSize(rank - 1 - transposeA);
  int64_t innerB = b.getDimSize(rank - 2 + transposeB), n = b.getDimSize(rank - 1 - transposeB);
  if (innerA != innerB)
    return inferenceError("{0} of {1}{2} and {3}{4}: the inner extents {5} and {6} differ", op, typeText(a),
                          transposeA ? " (transposed)" : "", typeText(b), transposeB ? " (transposed)" : "", innerA,
                          innerB);
  return std::pair(m, n);
}

llvm::Expected<SmallVector<int64_t>> broadcastShapes(StringRef op, RankedTensorType a, RankedTensorType b) {
  ArrayRef<int64_t> longer = a.getShape(), shorter = b.getShape();
  if (longer.size() < shorter.size())
    std::swap(longer, shorter);
  SmallVector<int64_t> result(longer);
  size_t offset = longer.size() - shorter.size();
  for (size_t axis = 0; axis < shorter.size(); ++axis) {
    int64_t &extent = result[offset + axis];
    if (extent == shorter[axis] || shorter[axis] == 1)
      continue;
    if (extent != 1)
      return inferenceError("{0} cannot broadcast {1} with {2}: aligned at the right, extents must be equal or 1", op,
                            typeText(a), typeText(b));
    extent = shorter[axis];
  }
  return result;
}

llvm::Error expectShape(StringRef op, StringRef name, RankedTensorType type, ArrayRef<int64_t> expected) {
  if (type.getShape() == expected)
    return llvm::Error::success();
  return inferenceError("{0} expects {1} of shape {2}, got {3}", op, name, shapeText(expected), typeText(type));
}

llvm::Error expectRank(StringRef op, StringRef name, RankedTensorType type, int64_t rank) {
  if (type.getRank() == rank)
    return llvm::Error::success();
  return inferenceError("{0} expects {1} of rank {2}, got {3}", op, name, rank, typeText(type));
}

RankedTensorType withShape(RankedTensorType like, ArrayRef<int64_t> extents) {
  return RankedTensorType::get(extents, like.getElementType());
}

RankedTensorType f32Tensor(MLIRContext *context, ArrayRef<int64_t> extents) {
  return RankedTensorType::get(extents, Float32Type::get(context));
}

SmallVector<int64_t> imageShape(ImageAxes axes, int64_t batch, int64_t channels, int64_t height, int64_t width) {
  SmallVector<int64_t> result(4);
  result[axes.batch] = batch;
  result[axes.channel] = channels;
  result[axes.height] = height;
  result[axes.width] = width;
  return result;
}

SmallVector<int64_t> lossShape(DictionaryAttr dictionary, ArrayRef<int64_t> elements) {
  bool keep = toAttributes(dictionary).Get(attribute::kReduction) == LossReduction::kNone;
  return keep ? SmallVector<int64_t>(elements) : SmallVector<int64_t>();
}

llvm::Expected<int64_t> normalAxis(StringRef op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return inferenceError("{0} axis {1} is outside [{2}, {3}) of a rank-{3} tensor", op, axis, -rank, rank);
  return axis < 0 ? axis + rank : axis;
}

InferredTypes inferAllSameShape(TypeRange operands, const OperandNames &given) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  for (size_t index = 1; index < types.size(); ++index)
    MPC_RETURN_IF_ERROR(expectShape(given.op, given.names[index], types[index], types.front().getShape()));
  return SmallVector<RankedTensorType>{types.front()};
}

InferredTypes inferBroadcast(TypeRange operands, const OperandNames &given) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  MPC_ASSIGN_OR_RETURN(result, broadcastShapes(given.op, types[0], types[1]));
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, promotedType(types))};
}

InferredTypes inferComparison(TypeRange operands, const OperandNames &given) {
  MPC_ASSIGN_OR_RETURN(types, inferBroadcast(operands, given));
  return SmallVector<RankedTensorType>{types[0].clone(IntegerType::get(types[0].getContext(), 1))};
}

InferredTypes inferExtremumGrad(TypeRange operands, const OperandNames &given) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  MPC_ASSIGN_OR_RETURN(result, broadcastShapes(given.op, types[1], types[2]));
  MPC_RETURN_IF_ERROR(expectShape(given.op, "dy", types[0], result));
  return SmallVector<RankedTensorType>{withShape(types[1], result), withShape(types[2], result)};
}

InferredTypes inferConvolution(StringRef op, ArrayRef<RankedTensorType> types, ArrayRef<int64_t> result,
                               int64_t channels) {
  if (types.size() == 3)
    MPC_RETURN_IF_ERROR(expectShape(op, "a bias", types[2], {channels}));
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, promotedType(types.take_front(2)))};
}

InferredTypes inferElementLoss(TypeRange operands, DictionaryAttr dictionary, const OperandNames &given,
                               StringRef target) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  MPC_RETURN_IF_ERROR(expectShape(given.op, target, types[1], types[0].getShape()));
  return SmallVector<RankedTensorType>{f32Tensor(types[0].getContext(), lossShape(dictionary, types[0].getShape()))};
}

InferredTypes inferElementLossGrad(TypeRange operands, DictionaryAttr dictionary, const OperandNames &given,
                                   StringRef target) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  MPC_RETURN_IF_ERROR(expectShape(given.op, target, types[2], types[1].getShape()));
  MPC_RETURN_IF_ERROR(expectShape(given.op, "dloss", types[0], lossShape(dictionary, types[1].getShape())));
  return SmallVector<RankedTensorType>{types[1]};
}

InferredTypes inferReduction(TypeRange operands, DictionaryAttr dictionary, const OperandNames &given) {
  MPC_ASSIGN_OR_RETURN(types, operandTypes(operands, given));
  return inferReduction(types[0], dictionary, given.op);
}

InferredTypes inferReduction(RankedTensorType x, DictionaryAttr dictionary, StringRef op) {
  Attributes values = toAttributes(dictionary);
  ArrayRef<int64_t> extents = x.getShape();
  std::vector<int64_t> axes = values.GetInts("axes");
  SmallVector<bool> reduced(extents.size(), axes.empty());
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= int64_t(extents.size()) || reduced[axis])
      return inferenceError("{0} axes must be distinct and in [0, {1}), got {2}", op, extents.size(), axis);
    reduced[axis] = true;
  }
  SmallVector<int64_t> result;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (!reduced[axis])
      result.push_back(extents[axis]);
    else if (values.GetBool("keep_dims"))
      result.push_back(1);
  }
  return SmallVector<RankedTensorType>{RankedTensorType::get(result, x.getElementType())};
}

llvm::Error expectScalars(StringRef op, ArrayRef<RankedTensorType> types) {
  for (RankedTensorType type : types)
    if (type.getRank() != 0)
      return inferenceError("{0} expects scalars (rank 0), got {1}", op, typeText(type));
  return llvm::Error::success();
}

llvm::Error expectElement(StringRef op, StringRef name, RankedTensorType type, bool flag) {
  if (flag ? type.getElementType().isInteger(1) : isa<Float32Type, Float64Type>(type.getElementType()))
    return llvm::Error::success();
  return inferenceError("{0} expects {1} to be {2}, got {3}; a scale comes with unscale = true, a norm with max_norm",
                        op, name,
                        flag             ? "tensor<i1>"
                        : name == "norm" ? "tensor<f64>"
                                         : "tensor<f32>",
                        typeText(type));
}

InFlightDiagnostic resultError(OpResult result) {
  return result.getOwner()->emitOpError() << "result " << result.getResultNumber() << " is " << result.getType();
}

FailureOr<YieldOp> yieldOf(Operation *op) {
  Operation &last = op->getRegion(0).front().back();
  if (auto yield = dyn_cast<YieldOp>(last))
    return yield;
  op->emitOpError() << "must end with '" << YieldOp::getOperationName() << "', got '" << last.getName() << "'";
  return failure();
}

} // namespace mpc
