// Derivatives of batched matrix work, attention, recurrent cells, transposed convolution, layer and group
// normalisation, binary cross-entropy.
#include "compiler/dialect/vjp_support.h"
#include "kernels/window.h"

using namespace mlir;

namespace mpc {

static Value zeros(OpBuilder &Builder, Location Loc, Type Like) {
  auto Type = cast<RankedTensorType>(Like);
  Attribute Zero = Builder.getFloatAttr(Type.getElementType(), 0.0);
  return ConstantOp::create(Builder, Loc, Type, DenseElementsAttr::get(Type, Zero));
}

// The results of a gradient operation that are needed; its results are in the operands' order.
static SmallVector<Value> neededResults(Operation *Gradient, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(Needed.size());
  for (unsigned Index = 0; Index < std::min<size_t>(Needed.size(), Gradient->getNumResults()); ++Index)
    if (Needed[Index])
      Result[Index] = Gradient->getResult(Index);
  return Result;
}

//===-- Matrix work ----------------------------------------------------------------------------------------------===//

Cotangents BatchMatmulOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  bool TransposeA = getTransposeA(), TransposeB = getTransposeB();
  auto Product = [&](Value Like, Value Left, bool TransposeLeft, Value Right, bool TransposeRight) -> Value {
    return BatchMatmulOp::create(Builder, getLoc(), Like.getType(), Left, Right, TransposeLeft, TransposeRight);
  };
  // As for matmul: dA = dy B^T and dB = A^T dy; a transposed operand takes the transpose of the whole.
  if (Needed[0])
    Result[0] = TransposeA ? Product(getA(), getB(), TransposeB, Dy[0], true)
                           : Product(getA(), Dy[0], false, getB(), !TransposeB);
  if (Needed[1])
    Result[1] = TransposeB ? Product(getB(), Dy[0], true, getA(), TransposeA)
                           : Product(getB(), getA(), !TransposeA, Dy[0], false);
  return Result;
}

Cotangents AttentionOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (Dy[1])
    return noDerivativeBySaved(*this, "log_sum_exp");
  if (!llvm::is_contained(Needed, true))
    return SmallVector<Value>(getNumOperands());
  auto Gradient = AttentionGradOp::create(Builder, getLoc(), getQuery().getType(), getKey().getType(),
                                          getValue().getType(), Dy[0], getQuery(), getKey(), getValue(), getLogSumExp(),
                                          getMask(), getScaleAttr(), getCausalAttr());
  return neededResults(Gradient, Needed);
}

//===-- Recurrent cells ------------------------------------------------------------------------------------------===//

Cotangents LstmCellOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (Dy[2])
    return noDerivativeBySaved(*this, "activations");
  if (!llvm::is_contained(Needed, true))
    return SmallVector<Value>(2);
  // One of the two states may take no part in the loss: the last step's cell state usually does not.
  auto OrZeros = [&](Value Cotangent, Value State) {
    return Cotangent ? Cotangent : zeros(Builder, getLoc(), State.getType());
  };
  auto Gradient = LstmCellGradOp::create(Builder, getLoc(), getGates().getType(), getCellState().getType(),
                                         OrZeros(Dy[0], getHidden()), OrZeros(Dy[1], getNewCellState()),
                                         getActivations(), getCellState(), getNewCellState());
  return neededResults(Gradient, Needed);
}

//===-- Transposed convolution -----------------------------------------------------------------------------------===//

// The operation is linear in x and in the weight, and is itself conv2d's derivative: y stands for that convolution's
// input, x for its result.
Cotangents ConvTranspose2dOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(getNumOperands());
  if (Needed[0])
    Result[0] =
        Conv2dOp::create(Builder, getLoc(), getX().getType(), Dy[0], getWeight(), /*bias=*/Value(), getStrides(),
                         getDilations(), getPadMode(), getPadding(), getGroups(), getDataFormat());
  if (Needed[1])
    Result[1] = Conv2dGradWeightOp::create(Builder, getLoc(), getWeight().getType(), Dy[0], getX(),
                                           tensorTypeOf(getWeight()).getShape(), getStrides(), getDilations(),
                                           getPadMode(), getPadding(), getGroups(), getDataFormat());
  if (getBias() && Needed[2]) {
    SmallVector<int64_t> Axes;
    for (int64_t Axis = 0; Axis < 4; ++Axis)
      if (Axis != AxesOf(getDataFormat()).channel)
        Axes.push_back(Axis);
    Result[2] = ReduceSumOp::create(Builder, getLoc(), getBias().getType(), Dy[0], Axes, /*keep_dims=*/false);
  }
  return Result;
}

//===-- Normalisation --------------------------------------------------------------------------------------------===//

// Refuses cotangents of the statistics, results 1 and 2.
static LogicalResult checkStatistics(Operation *Op, ValueRange Dy) {
  for (unsigned Index : {1u, 2u})
    if (Dy[Index])
      return noDerivativeBySaved(Op, Index == 1 ? "mean" : "inv_std");
  return success();
}

Cotangents LayerNormOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (failed(checkStatistics(*this, Dy)))
    return failure();
  if (!llvm::is_contained(Needed, true))
    return SmallVector<Value>(3);
  auto Gradient = LayerNormGradOp::create(Builder, getLoc(), getX().getType(), getGamma().getType(),
                                          getBeta().getType(), Dy[0], getX(), getGamma(), getMean(), getInvStd());
  return neededResults(Gradient, Needed);
}

Cotangents GroupNormOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (failed(checkStatistics(*this, Dy)))
    return failure();
  if (!llvm::is_contained(Needed, true))
    return SmallVector<Value>(3);
  auto Gradient =
      GroupNormGradOp::create(Builder, getLoc(), getX().getType(), getGamma().getType(), getBeta().getType(), Dy[0],
                              getX(), getGamma(), getMean(), getInvStd(), getGroups(), getDataFormat());
  return neededResults(Gradient, Needed);
}

//===-- Loss -----------------------------------------------------------------------------------------------------===//

Cotangents BceWithLogitsOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  if (Needed[1])
    return noDerivativeByLabels(*this);
  SmallVector<Value> Result(2);
  if (Needed[0])
    Result[0] = BceWithLogitsGradOp::create(Builder, getLoc(), getLogits().getType(), Dy[0], getLogits(), getLabels(),
                                            getReduction());
  return Result;
}

} // namespace mpc
