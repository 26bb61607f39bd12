// Derivatives of operations that move parts of tensors, look values up, and of the maximum over axes.
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

static Type elementOf(Value V) { return tensorTypeOf(V).getElementType(); }

Cotangents ConcatOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(getNumOperands());
  int64_t Rank = tensorTypeOf(getY()).getRank(), Axis = int64_t(getAxis());
  if (Axis < 0)
    Axis += Rank;
  SmallVector<int64_t> Starts(Rank, 0);
  for (auto [Index, Input] : llvm::enumerate(getInputs())) {
    RankedTensorType Type = tensorTypeOf(Input);
    if (Needed[Index]) {
      Value Cotangent = castTo(Builder, getLoc(), Dy[0], Type.getElementType());
      Result[Index] = SliceOp::create(Builder, getLoc(), Type, Cotangent, Starts, Type.getShape());
    }
    Starts[Axis] += Type.getDimSize(Axis);
  }
  return Result;
}

Cotangents SliceOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(1);
  if (!Needed[0])
    return Result;
  RankedTensorType Type = tensorTypeOf(getX());
  SmallVector<int64_t> High;
  for (auto [Extent, Start, Size] : llvm::zip_equal(Type.getShape(), getStarts(), getSizes()))
    High.push_back(Extent - Start - Size);
  Value Cotangent = castTo(Builder, getLoc(), Dy[0], Type.getElementType());
  Result[0] = PadOp::create(Builder, getLoc(), Type, Cotangent, getStarts(), High, llvm::APFloat(0.0f));
  return Result;
}

Cotangents SplitOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(1);
  if (!Needed[0])
    return Result;
  Type Element = elementOf(getX());
  SmallVector<Value> Parts;
  for (auto [Cotangent, Piece] : llvm::zip_equal(Dy, getPieces())) {
    if (Cotangent) {
      Parts.push_back(castTo(Builder, getLoc(), Cotangent, Element));
      continue;
    }
    RankedTensorType Type = withElementType(tensorTypeOf(Piece), Element);
    auto Zero = DenseElementsAttr::get(Type, Builder.getFloatAttr(Element, 0).getValue());
    Parts.push_back(ConstantOp::create(Builder, getLoc(), Type, Zero));
  }
  Result[0] = ConcatOp::create(Builder, getLoc(), getX().getType(), Parts, getAxisAttr());
  return Result;
}

Cotangents PadOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(1);
  if (!Needed[0])
    return Result;
  RankedTensorType Type = tensorTypeOf(getX());
  Value Cotangent = castTo(Builder, getLoc(), Dy[0], Type.getElementType());
  Result[0] = SliceOp::create(Builder, getLoc(), Type, Cotangent, getLow(), Type.getShape());
  return Result;
}

Cotangents GatherOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  RankedTensorType Type = tensorTypeOf(getTable());
  if (Needed[0])
    Result[0] = GatherGradOp::create(Builder, getLoc(), Type, Dy[0], getIndices(), Type.getDimSize(0));
  return Result;
}

Cotangents ReduceMaxOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(1);
  if (Needed[0])
    Result[0] = ReduceMaxGradOp::create(Builder, getLoc(), getX().getType(), Dy[0], getX(), getY(), getAxesAttr(),
                                        getKeepDimsAttr());
  return Result;
}

} // namespace mpc
