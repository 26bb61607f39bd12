#include "compiler/dialect/state_attributes.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mpc {

StateAttr argumentState(FunctionOpInterface function, unsigned index) {
  return function.getArgAttrOfType<StateAttr>(index, stateAttrName);
}

StateAttr resultState(FunctionOpInterface function, unsigned index) {
  return function.getResultAttrOfType<StateAttr>(index, stateAttrName);
}

void setArgumentState(FunctionOpInterface function, unsigned index, StateAttr state) {
  function.setArgAttr(index, stateAttrName, state);
}

void setResultState(FunctionOpInterface function, unsigned index, StateAttr state) {
  function.setResultAttr(index, stateAttrName, state);
}

static std::optional<Role> roleIn(StateAttr state) { return state ? std::optional(state.getRole()) : std::nullopt; }
static StringRef nameIn(StateAttr state) { return state ? state.getName() : StringRef(); }

std::optional<Role> argumentRole(FunctionOpInterface function, unsigned index) {
  return roleIn(argumentState(function, index));
}

std::optional<Role> resultRole(FunctionOpInterface function, unsigned index) {
  return roleIn(resultState(function, index));
}

StringRef argumentName(FunctionOpInterface function, unsigned index) { return nameIn(argumentState(function, index)); }

StringRef resultName(FunctionOpInterface function, unsigned index) { return nameIn(resultState(function, index)); }

// The function whose argument \p v is; null for any other value.
static FunctionOpInterface functionOf(Value v) {
  auto argument = dyn_cast<BlockArgument>(v);
  auto function =
      argument ? dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp()) : FunctionOpInterface();
  return function && argument.getOwner()->isEntryBlock() ? function : FunctionOpInterface();
}

StateAttr stateOf(Value v) {
  FunctionOpInterface function = functionOf(v);
  return function ? argumentState(function, cast<BlockArgument>(v).getArgNumber()) : StateAttr();
}

std::optional<Role> roleOf(Value v) { return roleIn(stateOf(v)); }

StringRef nameOf(Value v) { return nameIn(stateOf(v)); }

StateAttr makeState(MLIRContext *context, Role given, StringRef name, StringRef of, Type form) {
  return StateAttr::get(context, given, name, of, form);
}

DictionaryAttr describedBy(StateAttr state) {
  Builder b(state.getContext());
  return b.getDictionaryAttr(b.getNamedAttr(stateAttrName, state));
}

} // namespace mpc
