// Comparisons, choices and casts, element by element.
#include "compiler/dialect/fusible_space.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/scalar/binary.h"
#include "kernels/scalar/cast.h"

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

static Double exactOperand(ElementContext &Context, Value Operand, unsigned Index) {
  return isFloating(Operand) ? ToDouble(Context.operand(Index)) : ToDouble(Context.integerOperand(Index));
}

// Exact whatever the pair of types: integers are compared as integers, floating numbers in f32, a mix in f64.
template <typename Relation> static void emitComparison(ElementContext &Context, Value A, Value B) {
  if (isFloating(A) && isFloating(B))
    Context.setResult(0, Relation::Apply(Context.operand(0), Context.operand(1)));
  else if (!isFloating(A) && !isFloating(B))
    Context.setResult(0, Relation::Apply(Context.integerOperand(0), Context.integerOperand(1)));
  else
    Context.setResult(0, Relation::Apply(exactOperand(Context, A, 0), exactOperand(Context, B, 1)));
}

void EqualOp::emitElement(ElementContext &Context) { emitComparison<scalar::EqualOp>(Context, getA(), getB()); }
void GreaterOp::emitElement(ElementContext &Context) { emitComparison<scalar::GreaterOp>(Context, getA(), getB()); }
void LessOp::emitElement(ElementContext &Context) { emitComparison<scalar::LessOp>(Context, getA(), getB()); }

void WhereOp::emitElement(ElementContext &Context) {
  Context.setResult(0, Select(Context.boolOperand(0), Context.operand(1), Context.operand(2)));
}

void SelectOp::emitElement(ElementContext &Context) {
  Bool Condition = Context.boolOperand(0);
  if (isFloating(getA()))
    Context.setResult(0, Select(Condition, Context.operand(1), Context.operand(2)));
  else if (tensorType(getA()).getElementType().isInteger(1))
    Context.setResult(0, Select(Condition, Context.boolOperand(1), Context.boolOperand(2)));
  else
    Context.setResult(0, Select(Condition, Context.integerOperand(1), Context.integerOperand(2)));
}

FusibleSpace CastOp::getSpace() {
  Type From = tensorType(getX()).getElementType(), To = tensorType(getY()).getElementType();
  // An f32 on the way would round twice.
  if (isa<IntegerType>(From) && !From.isInteger(1) && isLow(To))
    return unfit(*this, llvm::formatv("from {0} to {1} it rounds a number that f32 may not hold", From, To));
  return elementwiseSpace(*this);
}

static void castFloat(ElementContext &Context, Type To) {
  Float X = Context.operand(0);
  if (isa<FloatType>(To))
    Context.setResult(0, X);
  else if (To.isInteger(1))
    Context.setResult(0, X != 0.0f);
  else
    Context.setResult(0, Truncated(X, To.getIntOrFloatBitWidth()));
}

static void castBool(ElementContext &Context, Type To) {
  Bool X = Context.boolOperand(0);
  Long One = 1, Zero = 0;
  if (isa<FloatType>(To))
    Context.setResult(0, ToFloat(X));
  else if (To.isInteger(1))
    Context.setResult(0, X);
  else
    Context.setResult(0, Select(X, One, Zero));
}

// A result stores the low ones of 64 bits.
static Long saturate(Long X, unsigned Width) {
  return Width == 64 ? X : scalar::Nearest<Long>(X, llvm::minIntN(Width), llvm::maxIntN(Width));
}

static void castInteger(ElementContext &Context, Type To) {
  Long X = Context.integerOperand(0);
  if (isa<FloatType>(To))
    Context.setResult(0, ToFloat(X));
  else if (To.isInteger(1))
    Context.setResult(0, X != 0);
  else
    Context.setResult(0, saturate(X, To.getIntOrFloatBitWidth()));
}

void CastOp::emitElement(ElementContext &Context) {
  Type From = tensorType(getX()).getElementType(), To = tensorType(getY()).getElementType();
  if (isa<FloatType>(From))
    castFloat(Context, To);
  else if (From.isInteger(1))
    castBool(Context, To);
  else
    castInteger(Context, To);
}

} // namespace mpc
