#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

MpcDialect &dialectOf(Operation *Op) { return *Op->getContext()->getLoadedDialect<MpcDialect>(); }

void markStep(Operation *Op) { dialectOf(Op).getStepAttrHelper().setAttr(Op, UnitAttr::get(Op->getContext())); }

ScopeAttr scopeOf(Operation *Op) { return dialectOf(Op).getScopeAttrHelper().getAttr(Op); }

void setScope(Operation *Op, ScopeAttr Scope) { dialectOf(Op).getScopeAttrHelper().setAttr(Op, Scope); }

StringRef pathOf(Operation *Op) {
  ScopeAttr Scope = scopeOf(Op);
  return Scope ? Scope.getPath() : StringRef();
}

bool liesInCell(StringRef Path, StringRef Cell) { return Path.consume_front(Cell) && (Path.empty() || Path[0] == '/'); }

std::string nameWithPath(Operation *Op) {
  StringRef Name = Op->getName().getStringRef(), Path = pathOf(Op);
  return Path.empty() ? Name.str() : (Name + " in " + Path).str();
}

PrecisionAttr precisionOf(Operation *Op) { return dialectOf(Op).getPrecisionAttrHelper().getAttr(Op); }

void setPrecision(Operation *Op, PrecisionAttr Precision) {
  dialectOf(Op).getPrecisionAttrHelper().setAttr(Op, Precision);
}

bool isMarkedBackward(Operation *Op) { return dialectOf(Op).getBackwardAttrHelper().isAttrPresent(Op); }

void markBackward(Operation *Op) { dialectOf(Op).getBackwardAttrHelper().setAttr(Op, UnitAttr::get(Op->getContext())); }

IntegerAttr recomputeCallOf(Operation *Op) { return dialectOf(Op).getRecomputeAttrHelper().getAttr(Op); }

void setRecomputeCall(Operation *Op, IntegerAttr Call) {
  MpcDialect::RecomputeAttrHelper Helper = dialectOf(Op).getRecomputeAttrHelper();
  if (Call)
    Helper.setAttr(Op, Call);
  else if (Helper.isAttrPresent(Op))
    Helper.removeAttr(Op);
}

void copyOrigin(Operation *Old, Operation *New) {
  if (ScopeAttr Scope = scopeOf(Old))
    setScope(New, Scope);
  if (isMarkedBackward(Old))
    markBackward(New);
}

} // namespace mpc
