#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/dialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mpc {

static StringRef textOf(Attribute Given) {
  auto Text = dyn_cast_or_null<StringAttr>(Given);
  return Text ? Text.getValue() : StringRef();
}

static std::optional<Role> roleNamed(Attribute Given) {
  StringRef Text = textOf(Given);
  return ParseRole({Text.data(), Text.size()});
}

std::optional<Role> argumentRole(FunctionOpInterface Function, unsigned Index) {
  return roleNamed(Function.getArgAttr(Index, RoleAttrName));
}

std::optional<Role> resultRole(FunctionOpInterface Function, unsigned Index) {
  return roleNamed(Function.getResultAttr(Index, RoleAttrName));
}

StringRef argumentName(FunctionOpInterface Function, unsigned Index) {
  return textOf(Function.getArgAttr(Index, NameAttrName));
}

StringRef resultName(FunctionOpInterface Function, unsigned Index) {
  return textOf(Function.getResultAttr(Index, NameAttrName));
}

// The function whose argument \p V is; null for any other value.
static FunctionOpInterface functionOf(Value V) {
  auto Argument = dyn_cast<BlockArgument>(V);
  auto Function =
      Argument ? dyn_cast_or_null<FunctionOpInterface>(Argument.getOwner()->getParentOp()) : FunctionOpInterface();
  return Function && Argument.getOwner()->isEntryBlock() ? Function : FunctionOpInterface();
}

std::optional<Role> roleOf(Value V) {
  FunctionOpInterface Function = functionOf(V);
  return Function ? argumentRole(Function, cast<BlockArgument>(V).getArgNumber()) : std::nullopt;
}

StringRef nameOf(Value V) {
  FunctionOpInterface Function = functionOf(V);
  return Function ? argumentName(Function, cast<BlockArgument>(V).getArgNumber()) : StringRef();
}

DictionaryAttr roleAndName(MLIRContext *Context, Role Given, StringRef Name) {
  Builder B(Context);
  return B.getDictionaryAttr({B.getNamedAttr(RoleAttrName, B.getStringAttr(roleName(Given))),
                              B.getNamedAttr(NameAttrName, B.getStringAttr(Name))});
}

} // namespace mpc
