#include "compiler/dialect/vjp_support.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

RankedTensorType tensorTypeOf(Value V) { return cast<RankedTensorType>(V.getType()); }

RankedTensorType withElementType(RankedTensorType Like, Type Element) {
  return RankedTensorType::get(Like.getShape(), Element);
}

Type accumulatorType(Type Element) { return isLow(Element) ? Float32Type::get(Element.getContext()) : Element; }

Value castTo(OpBuilder &Builder, Location Loc, Value V, Type Element) {
  RankedTensorType Type = tensorTypeOf(V);
  if (Type.getElementType() == Element)
    return V;
  return CastOp::create(Builder, Loc, withElementType(Type, Element), V);
}

Value sumTo(OpBuilder &Builder, Location Loc, Value V, RankedTensorType Target) {
  RankedTensorType Type = tensorTypeOf(V);
  if (Type.getShape() == Target.getShape())
    return castTo(Builder, Loc, V, Target.getElementType());

  int64_t Missing = Type.getRank() - Target.getRank();
  SmallVector<int64_t> Axes;
  for (int64_t Axis = 0; Axis < Type.getRank(); ++Axis)
    if (Axis < Missing || Type.getDimSize(Axis) != Target.getDimSize(Axis - Missing))
      Axes.push_back(Axis);

  // Only leading axes disappear, or only extents of 1 stay: the reduction gives the target's shape by itself.
  if (int64_t(Axes.size()) == Missing)
    return ReduceSumOp::create(Builder, Loc, Target, V, Axes, /*keep_dims=*/false);
  if (Missing == 0)
    return ReduceSumOp::create(Builder, Loc, Target, V, Axes, /*keep_dims=*/true);

  SmallVector<int64_t> Kept;
  for (int64_t Axis = 0; Axis < Type.getRank(); ++Axis)
    if (!llvm::is_contained(Axes, Axis))
      Kept.push_back(Type.getDimSize(Axis));
  auto Sum = ReduceSumOp::create(Builder, Loc, RankedTensorType::get(Kept, Target.getElementType()), V, Axes,
                                 /*keep_dims=*/false);
  return ReshapeOp::create(Builder, Loc, Target, Sum, Target.getShape());
}

RankedTensorType termType(RankedTensorType Operand, ArrayRef<int64_t> Full) {
  if (Operand.getShape() == Full)
    return Operand;
  return RankedTensorType::get(Full, accumulatorType(Operand.getElementType()));
}

Cotangents firstCotangent(ArrayRef<bool> Needed, llvm::function_ref<Value()> Create) {
  SmallVector<Value> Result(Needed.size());
  if (Needed[0])
    Result[0] = Create();
  return Result;
}

Cotangents resultCotangents(ArrayRef<bool> Needed, llvm::function_ref<Operation *()> Create) {
  SmallVector<Value> Result(Needed.size());
  if (!llvm::is_contained(Needed, true))
    return Result;
  for (auto [Cotangent, IsNeeded, Computed] : llvm::zip(Result, Needed, Create()->getResults()))
    if (IsNeeded)
      Cotangent = Computed;
  return Result;
}

Value biasCotangent(OpBuilder &Builder, Location Loc, Value Dz, int64_t ChannelAxis, Value Bias) {
  SmallVector<int64_t> Axes;
  for (int64_t Axis = 0; Axis < tensorTypeOf(Dz).getRank(); ++Axis)
    if (Axis != ChannelAxis)
      Axes.push_back(Axis);
  return ReduceSumOp::create(Builder, Loc, Bias.getType(), Dz, Axes, /*keep_dims=*/false);
}

std::string describeWithCell(Operation *Op) {
  std::string Text = "'" + Op->getName().getStringRef().str() + "'";
  if (StringRef Path = pathOf(Op); !Path.empty())
    Text += " in '" + Path.str() + "'";
  return Text;
}

InFlightDiagnostic noDerivativeBySaved(Operation *Op, StringRef Result) {
  return Op->emitError() << describeWithCell(Op) << " has no derivative by its " << Result
                         << ", which is saved for its own derivative, but the loss depends on it";
}

InFlightDiagnostic noDerivativeByLabels(Operation *Loss) {
  return Loss->emitError() << describeWithCell(Loss)
                           << " has no derivative by its labels, but the gradient of operand 1 (labels) is needed; use "
                              "mpc.stop_gradient on labels that depend on parameters";
}

Value scalarConstant(OpBuilder &Builder, Location Loc, Type Element, double Number) {
  auto Type = RankedTensorType::get({}, Element);
  auto Elements = DenseElementsAttr::get(Type, Builder.getFloatAttr(Element, Number).getValue());
  return ConstantOp::create(Builder, Loc, Type, Elements);
}

} // namespace mpc
