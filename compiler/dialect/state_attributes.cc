#include "compiler/dialect/state_attributes.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mpc {

StateAttr argumentState(FunctionOpInterface Function, unsigned Index) {
  return Function.getArgAttrOfType<StateAttr>(Index, StateAttrName);
}

StateAttr resultState(FunctionOpInterface Function, unsigned Index) {
  return Function.getResultAttrOfType<StateAttr>(Index, StateAttrName);
}

void setArgumentState(FunctionOpInterface Function, unsigned Index, StateAttr State) {
  Function.setArgAttr(Index, StateAttrName, State);
}

void setResultState(FunctionOpInterface Function, unsigned Index, StateAttr State) {
  Function.setResultAttr(Index, StateAttrName, State);
}

static std::optional<Role> roleIn(StateAttr State) { return State ? std::optional(State.getRole()) : std::nullopt; }
static StringRef nameIn(StateAttr State) { return State ? State.getName() : StringRef(); }

std::optional<Role> argumentRole(FunctionOpInterface Function, unsigned Index) {
  return roleIn(argumentState(Function, Index));
}

std::optional<Role> resultRole(FunctionOpInterface Function, unsigned Index) {
  return roleIn(resultState(Function, Index));
}

StringRef argumentName(FunctionOpInterface Function, unsigned Index) { return nameIn(argumentState(Function, Index)); }

StringRef resultName(FunctionOpInterface Function, unsigned Index) { return nameIn(resultState(Function, Index)); }

// The function whose argument \p V is; null for any other value.
static FunctionOpInterface functionOf(Value V) {
  auto Argument = dyn_cast<BlockArgument>(V);
  auto Function =
      Argument ? dyn_cast_or_null<FunctionOpInterface>(Argument.getOwner()->getParentOp()) : FunctionOpInterface();
  return Function && Argument.getOwner()->isEntryBlock() ? Function : FunctionOpInterface();
}

StateAttr stateOf(Value V) {
  FunctionOpInterface Function = functionOf(V);
  return Function ? argumentState(Function, cast<BlockArgument>(V).getArgNumber()) : StateAttr();
}

std::optional<Role> roleOf(Value V) { return roleIn(stateOf(V)); }

StringRef nameOf(Value V) { return nameIn(stateOf(V)); }

StateAttr makeState(MLIRContext *Context, Role Given, StringRef Name, StringRef Of, Type Form) {
  return StateAttr::get(Context, Given, Name, Of, Form);
}

DictionaryAttr describedBy(StateAttr State) {
  Builder B(State.getContext());
  return B.getDictionaryAttr(B.getNamedAttr(StateAttrName, State));
}

} // namespace mpc
