#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

MpcDialect &dialectOf(Operation *Op) { return *Op->getContext()->getLoadedDialect<MpcDialect>(); }

ScopeAttr scopeOf(Operation *Op) { return dialectOf(Op).getScopeAttrHelper().getAttr(Op); }

void setScope(Operation *Op, ScopeAttr Scope) { dialectOf(Op).getScopeAttrHelper().setAttr(Op, Scope); }

StringRef pathOf(Operation *Op) {
  ScopeAttr Scope = scopeOf(Op);
  return Scope ? Scope.getPath() : StringRef();
}

std::string nameWithPath(Operation *Op) {
  StringRef Name = Op->getName().getStringRef(), Path = pathOf(Op);
  return Path.empty() ? Name.str() : (Name + " in " + Path).str();
}

StringAttr ampReasonOf(Operation *Op) { return dialectOf(Op).getAmpReasonAttrHelper().getAttr(Op); }

void setAmpReason(Operation *Op, StringAttr Reason) { dialectOf(Op).getAmpReasonAttrHelper().setAttr(Op, Reason); }

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
