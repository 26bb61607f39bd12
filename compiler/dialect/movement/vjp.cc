// Derivatives of operations that move parts of tensors and look values up.
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

Cotangents ConcatOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(getNumOperands());
  int64_t Rank = tensorTypeOf(getY()).getRank(), Axis = int64_t(getAxis());
  if (Axis < 0)
    Axis += Rank;
  SmallVector<int64_t> Starts(Rank, 0);
  for (auto [Index, Input] : llvm::enumerate(getInputs())) {
    RankedTensorType Type = tensorTypeOf(Input);
    if (Needed[Index])
      Result[Index] = moveBack<SliceOp>(Builder, getLoc(), Dy[0], Input, Starts, Type.getShape());
    Starts[Axis] += Type.getDimSize(Axis);
  }
  return Result;
}

Cotangents SliceOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<int64_t> High;
  for (auto [Extent, Start, Size] : llvm::zip_equal(tensorTypeOf(getX()).getShape(), getStarts(), getSizes()))
    High.push_back(Extent - Start - Size);
  return firstCotangent(Needed, [&] {
    return moveBack<PadOp>(Builder, getLoc(), Dy[0], getX(), getStarts(), High, llvm::APFloat(0.0f));
  });
}

Cotangents SplitOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return firstCotangent(Needed, [&] {
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
    return ConcatOp::create(Builder, getLoc(), getX().getType(), Parts, getAxisAttr());
  });
}

Cotangents PadOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return firstCotangent(Needed, [&] {
    return moveBack<SliceOp>(Builder, getLoc(), Dy[0], getX(), getLow(), tensorTypeOf(getX()).getShape());
  });
}

Cotangents GatherOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  RankedTensorType Type = tensorTypeOf(getTable());
  return firstCotangent(
      Needed, [&] { return GatherGradOp::create(Builder, getLoc(), Type, Dy[0], getIndices(), Type.getDimSize(0)); });
}

} // namespace mpc
