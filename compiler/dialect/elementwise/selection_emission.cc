// Comparisons, logic, choices and casts, element by element.
#include "compiler/dialect/fusible_space.h"
#include "compiler/dialect/inference_support.h"
#include "kernels/scalar/binary.h"
#include "kernels/scalar/cast.h"

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

static Double exactOperand(ElementContext &context, Value operand, unsigned index) {
  return isFloating(operand) ? ToDouble(context.operand(index)) : ToDouble(context.integerOperand(index));
}

// Exact whatever the pair of types: integers are compared as integers, floating numbers in f32, a mix in f64.
template <typename Relation> static void emitComparison(ElementContext &context, Value a, Value b) {
  if (isFloating(a) && isFloating(b))
    context.setResult(0, Relation::Apply(context.operand(0), context.operand(1)));
  else if (!isFloating(a) && !isFloating(b))
    context.setResult(0, Relation::Apply(context.integerOperand(0), context.integerOperand(1)));
  else
    context.setResult(0, Relation::Apply(exactOperand(context, a, 0), exactOperand(context, b, 1)));
}

void EqualOp::emitElement(ElementContext &context) { emitComparison<scalar::EqualOp>(context, getA(), getB()); }
void GreaterOp::emitElement(ElementContext &context) { emitComparison<scalar::GreaterOp>(context, getA(), getB()); }
void LessOp::emitElement(ElementContext &context) { emitComparison<scalar::LessOp>(context, getA(), getB()); }
void NotEqualOp::emitElement(ElementContext &context) { emitComparison<scalar::NotEqualOp>(context, getA(), getB()); }
void GreaterEqualOp::emitElement(ElementContext &context) {
  emitComparison<scalar::GreaterEqualOp>(context, getA(), getB());
}
void LessEqualOp::emitElement(ElementContext &context) { emitComparison<scalar::LessEqualOp>(context, getA(), getB()); }

void LogicalAndOp::emitElement(ElementContext &context) {
  context.setResult(0, scalar::LogicalAndOp::Apply(context.boolOperand(0), context.boolOperand(1)));
}
void LogicalOrOp::emitElement(ElementContext &context) {
  context.setResult(0, scalar::LogicalOrOp::Apply(context.boolOperand(0), context.boolOperand(1)));
}
void LogicalNotOp::emitElement(ElementContext &context) {
  context.setResult(0, scalar::LogicalNotOp::Apply(context.boolOperand(0)));
}

void handOnElement(ElementContext &context, Value operand, unsigned index) {
  if (isFloating(operand))
    context.setResult(0, context.operand(index));
  else if (tensorType(operand).getElementType().isInteger(1))
    context.setResult(0, context.boolOperand(index));
  else
    context.setResult(0, context.integerOperand(index));
}

void chooseElement(ElementContext &context, Value chosen) {
  Bool condition = context.boolOperand(0);
  if (isFloating(chosen))
    context.setResult(0, Select(condition, context.operand(1), context.operand(2)));
  else if (tensorType(chosen).getElementType().isInteger(1))
    context.setResult(0, Select(condition, context.boolOperand(1), context.boolOperand(2)));
  else
    context.setResult(0, Select(condition, context.integerOperand(1), context.integerOperand(2)));
}

void WhereOp::emitElement(ElementContext &context) { chooseElement(context, getA()); }
void SelectOp::emitElement(ElementContext &context) { chooseElement(context, getA()); }

FusibleSpace CastOp::getSpace() {
  Type from = tensorType(getX()).getElementType(), to = tensorType(getY()).getElementType();
  // An f32 on the way would round twice.
  if (isa<IntegerType>(from) && !from.isInteger(1) && isLow(to))
    return unfit(*this, llvm::formatv("from {0} to {1} it rounds a number that f32 may not hold", from, to));
  return elementwiseSpace(*this);
}

static void castFloat(ElementContext &context, Type to) {
  Float x = context.operand(0);
  if (isa<FloatType>(to))
    context.setResult(0, x);
  else if (to.isInteger(1))
    context.setResult(0, x != 0.0f);
  else
    context.setResult(0, Truncated(x, to.getIntOrFloatBitWidth()));
}

static void castBool(ElementContext &context, Type to) {
  Bool x = context.boolOperand(0);
  Long one = 1, zero = 0;
  if (isa<FloatType>(to))
    context.setResult(0, ToFloat(x));
  else if (to.isInteger(1))
    context.setResult(0, x);
  else
    context.setResult(0, Select(x, one, zero));
}

// A result stores the low ones of 64 bits.
static Long saturate(Long x, unsigned width) {
  return width == 64 ? x : scalar::Nearest<Long>(x, llvm::minIntN(width), llvm::maxIntN(width));
}

static void castInteger(ElementContext &context, Type to) {
  Long x = context.integerOperand(0);
  if (isa<FloatType>(to))
    context.setResult(0, ToFloat(x));
  else if (to.isInteger(1))
    context.setResult(0, x != 0);
  else
    context.setResult(0, saturate(x, to.getIntOrFloatBitWidth()));
}

void CastOp::emitElement(ElementContext &context) {
  Type from = tensorType(getX()).getElementType(), to = tensorType(getY()).getElementType();
  if (isa<FloatType>(from))
    castFloat(context, to);
  else if (from.isInteger(1))
    castBool(context, to);
  else
    castInteger(context, to);
}

} // namespace mpc
