// Derivatives of activation functions and other element-wise operations.
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

static SmallVector<Value> single(Value Cotangent) { return {Cotangent}; }

// A step function: zero where it has a derivative.
Cotangents FloorOp::buildVjp(OpBuilder &, ValueRange, ArrayRef<bool>) { return single(nullptr); }

Cotangents PreluOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return resultCotangents(Needed, [&] {
    return PreluGradOp::create(Builder, getLoc(), getX().getType(), getAlpha().getType(), Dy[0], getX(), getAlpha(),
                               getDataFormatAttr());
  });
}

Cotangents MinimumOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  return extremumCotangents<MinimumGradOp>(*this, Builder, Dy[0], Needed);
}

Cotangents WhereOp::buildVjp(OpBuilder &Builder, ValueRange Dy, ArrayRef<bool> Needed) {
  SmallVector<Value> Result(3);
  for (unsigned Index : {1u, 2u}) {
    if (!Needed[Index])
      continue;
    Value Zero = scalarConstant(Builder, getLoc(), tensorTypeOf(Dy[0]).getElementType(), 0);
    Value Chosen = Index == 1 ? Dy[0] : Zero, Other = Index == 1 ? Zero : Dy[0];
    Result[Index] = summedTerm<WhereOp>(Builder, getLoc(), getOperand(Index), getY(), {getCondition(), Chosen, Other});
  }
  return Result;
}

} // namespace mpc
