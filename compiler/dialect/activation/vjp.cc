// Derivatives of activation functions and other element-wise operations.
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

static SmallVector<Value> single(Value Cotangent) { return {Cotangent}; }

// A step function: zero where it has a derivative.
Cotangents FloorOp::buildVjp(OpBuilder &, ValueRange, ArrayRef<bool>) { return single(nullptr); }

Cotangents PreluOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(2);
  if (!Needed[0] && !Needed[1])
    return Result;
  auto Gradient = PreluGradOp::create(Builder, getLoc(), getX().getType(), getAlpha().getType(), Dy[0], getX(),
                                      getAlpha(), getDataFormatAttr());
  if (Needed[0])
    Result[0] = Gradient.getDx();
  if (Needed[1])
    Result[1] = Gradient.getDalpha();
  return Result;
}

Cotangents MinimumOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return extremumCotangents<MinimumGradOp>(*this, Builder, Dy[0], Needed);
}

Cotangents WhereOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(3);
  ArrayRef<int64_t> Full = tensorTypeOf(getY()).getShape();
  for (unsigned Index : {1u, 2u}) {
    if (!Needed[Index])
      continue;
    RankedTensorType Type = tensorTypeOf(getOperand(Index));
    Value Zero = scalarConstant(Builder, getLoc(), tensorTypeOf(Dy[0]).getElementType(), 0);
    Value Chosen = Index == 1 ? Dy[0] : Zero, Other = Index == 1 ? Zero : Dy[0];
    Value Term = WhereOp::create(Builder, getLoc(), termType(Type, Full), getCondition(), Chosen, Other);
    Result[Index] = sumTo(Builder, getLoc(), Term, Type);
  }
  return Result;
}

} // namespace mpc
