#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

MpcDialect &dialectOf(Operation *op) { return *op->getContext()->getLoadedDialect<MpcDialect>(); }

void markStep(Operation *op) { dialectOf(op).getStepAttrHelper().setAttr(op, UnitAttr::get(op->getContext())); }

ScopeAttr scopeOf(Operation *op) { return dialectOf(op).getScopeAttrHelper().getAttr(op); }

void setScope(Operation *op, ScopeAttr scope) { dialectOf(op).getScopeAttrHelper().setAttr(op, scope); }

StringRef pathOf(Operation *op) {
  ScopeAttr scope = scopeOf(op);
  return scope ? scope.getPath() : StringRef();
}

bool liesInCell(StringRef path, StringRef cell) { return path.consume_front(cell) && (path.empty() || path[0] == '/'); }

std::string nameWithPath(Operation *op) {
  StringRef name = op->getName().getStringRef(), path = pathOf(op);
  return path.empty() ? name.str() : (name + " in " + path).str();
}

PrecisionAttr precisionOf(Operation *op) { return dialectOf(op).getPrecisionAttrHelper().getAttr(op); }

void setPrecision(Operation *op, PrecisionAttr precision) {
  dialectOf(op).getPrecisionAttrHelper().setAttr(op, precision);
}

bool isMarkedBackward(Operation *op) { return dialectOf(op).getBackwardAttrHelper().isAttrPresent(op); }

void markBackward(Operation *op) { dialectOf(op).getBackwardAttrHelper().setAttr(op, UnitAttr::get(op->getContext())); }

bool isMarkedDifferentiated(Operation *op) { return dialectOf(op).getDifferentiatedAttrHelper().isAttrPresent(op); }

void markDifferentiated(Operation *op) {
  dialectOf(op).getDifferentiatedAttrHelper().setAttr(op, UnitAttr::get(op->getContext()));
}

void unmarkDifferentiated(Operation *op) {
  if (isMarkedDifferentiated(op))
    dialectOf(op).getDifferentiatedAttrHelper().removeAttr(op);
}

IntegerAttr recomputeCallOf(Operation *op) { return dialectOf(op).getRecomputeAttrHelper().getAttr(op); }

void setRecomputeCall(Operation *op, IntegerAttr call) {
  MpcDialect::RecomputeAttrHelper helper = dialectOf(op).getRecomputeAttrHelper();
  if (call)
    helper.setAttr(op, call);
  else if (helper.isAttrPresent(op))
    helper.removeAttr(op);
}

void copyOrigin(Operation *old, Operation *replacement) {
  if (ScopeAttr scope = scopeOf(old))
    setScope(replacement, scope);
  if (isMarkedBackward(old))
    markBackward(replacement);
}

} // namespace mpc
