#include "compiler/dialect/vjp_support.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

RankedTensorType tensorTypeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

RankedTensorType withElementType(RankedTensorType like, Type element) {
  return RankedTensorType::get(like.getShape(), element);
}

Type accumulatorType(Type element) { return isLow(element) ? Float32Type::get(element.getContext()) : element; }

Value castTo(OpBuilder &builder, Location loc, Value v, Type element) {
  RankedTensorType type = tensorTypeOf(v);
  if (type.getElementType() == element)
    return v;
  return CastOp::create(builder, loc, withElementType(type, element), v);
}

Value sumTo(OpBuilder &builder, Location loc, Value v, RankedTensorType target) {
  RankedTensorType type = tensorTypeOf(v);
  if (type.getShape() == target.getShape())
    return castTo(builder, loc, v, target.getElementType());

  int64_t missing = type.getRank() - target.getRank();
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (axis < missing || type.getDimSize(axis) != target.getDimSize(axis - missing))
      axes.push_back(axis);

  // Only leading axes disappear, or only extents of 1 stay: the reduction gives the target's shape by itself.
  if (int64_t(axes.size()) == missing)
    return ReduceSumOp::create(builder, loc, target, v, axes, /*keep_dims=*/false);
  if (missing == 0)
    return ReduceSumOp::create(builder, loc, target, v, axes, /*keep_dims=*/true);

  SmallVector<int64_t> kept;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (!llvm::is_contained(axes, axis))
      kept.push_back(type.getDimSize(axis));
  auto sum = ReduceSumOp::create(builder, loc, RankedTensorType::get(kept, target.getElementType()), v, axes,
                                 /*keep_dims=*/false);
  return ReshapeOp::create(builder, loc, target, sum, target.getShape());
}

RankedTensorType termType(RankedTensorType operand, ArrayRef<int64_t> full) {
  if (operand.getShape() == full)
    return operand;
  return RankedTensorType::get(full, accumulatorType(operand.getElementType()));
}

Cotangents firstCotangent(ArrayRef<bool> needed, llvm::function_ref<Value()> create) {
  SmallVector<Value> result(needed.size());
  if (needed[0])
    result[0] = create();
  return result;
}

Cotangents resultCotangents(ArrayRef<bool> needed, llvm::function_ref<Operation *()> create) {
  SmallVector<Value> result(needed.size());
  if (!llvm::is_contained(needed, true))
    return result;
  for (auto [cotangent, isNeeded, computed] : llvm::zip(result, needed, create()->getResults()))
    if (isNeeded)
      cotangent = computed;
  return result;
}

Value biasCotangent(OpBuilder &builder, Location loc, Value dz, int64_t channelAxis, Value bias) {
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; axis < tensorTypeOf(dz).getRank(); ++axis)
    if (axis != channelAxis)
      axes.push_back(axis);
  return ReduceSumOp::create(builder, loc, bias.getType(), dz, axes, /*keep_dims=*/false);
}

std::string describeWithCell(Operation *op) {
  std::string text = "'" + op->getName().getStringRef().str() + "'";
  if (StringRef path = pathOf(op); !path.empty())
    text += " in '" + path.str() + "'";
  return text;
}

InFlightDiagnostic noDerivativeBySaved(Operation *op, StringRef result) {
  return op->emitError() << describeWithCell(op) << " has no derivative by its " << result
                         << ", which is saved for its own derivative, but the loss depends on it";
}

InFlightDiagnostic noDerivativeByScale(Operation *op) {
  return op->emitError() << describeWithCell(op) << " has no derivative by its scale, but the gradient of it is needed";
}

InFlightDiagnostic noDerivativeByLabels(Operation *loss) {
  return loss->emitError() << describeWithCell(loss)
                           << " has no derivative by its labels, but the gradient of operand 1 (labels) is needed; use "
                              "mpc.stop_gradient on labels that depend on parameters";
}

Value scalarConstant(OpBuilder &builder, Location loc, Type element, double number) {
  auto type = RankedTensorType::get({}, element);
  auto elements = DenseElementsAttr::get(type, builder.getFloatAttr(element, number).getValue());
  return ConstantOp::create(builder, loc, type, elements);
}

Value integerConstant(OpBuilder &builder, Location loc, Type element, int64_t value) {
  RankedTensorType type = RankedTensorType::get({}, element);
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, builder.getIntegerAttr(element, value)));
}

Value isInRange(OpBuilder &builder, Location loc, Value v, int64_t end) {
  RankedTensorType type = tensorTypeOf(v), mask = withElementType(type, builder.getI1Type());
  Value zero = integerConstant(builder, loc, type.getElementType(), 0);
  Value behind = integerConstant(builder, loc, type.getElementType(), end);
  Value isCounted = GreaterEqualOp::create(builder, loc, mask, v, zero);
  return LogicalAndOp::create(builder, loc, mask, isCounted, LessOp::create(builder, loc, mask, v, behind));
}

Value filledConstant(OpBuilder &builder, Location loc, Type like, double number) {
  auto type = cast<RankedTensorType>(like);
  Attribute element = builder.getFloatAttr(type.getElementType(), number);
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, element));
}

Value reshapeTo(OpBuilder &builder, Location loc, Value v, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorTypeOf(v);
  if (type.getShape() == shape)
    return v;
  return ReshapeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), v, shape);
}

} // namespace mpc
