// The verifier of `mpc.role` and `mpc.name` on arguments and results of functions.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace mpc {

// "parameter, statistic, ..." for state, "input, ..." for data.
static std::string roleNames(bool OfState) {
  std::string Names;
  for (std::string_view Name : kRoleNames)
    if (IsState(*ParseRole(Name)) == OfState)
      Names += (Names.empty() ? "" : ", ") + std::string(Name);
  return Names;
}

// What has a role is a tensor: an entry of state, or data of a step.
static LogicalResult verifyIsTensor(Operation *Op, StringRef Kind, unsigned Index, Type Given, StringAttr Role) {
  auto Tensor = dyn_cast<RankedTensorType>(Given);
  if (Tensor && Tensor.hasStaticShape())
    return success();
  return Op->emitOpError() << Kind << " " << Index << " has the role " << Role << " and the type " << Given
                           << "; data and state are tensors of a static shape";
}

// \p Kind is "argument" or "result".
static LogicalResult verifyRoleAndName(Operation *Op, StringRef Kind, unsigned Index, NamedAttribute Attribute) {
  bool IsRole = Attribute.getName() == RoleAttrName;
  if (!IsRole && Attribute.getName() != NameAttrName)
    return success();
  auto Text = dyn_cast<StringAttr>(Attribute.getValue());
  if (!Text)
    return Op->emitOpError() << Kind << " " << Index << " has " << Attribute.getName().getValue() << " = "
                             << Attribute.getValue() << "; it must be a string";
  auto Function = dyn_cast<FunctionOpInterface>(Op);
  if (IsRole && Function &&
      failed(verifyIsTensor(Op, Kind, Index,
                            Kind == "argument" ? Function.getArgumentTypes()[Index] : Function.getResultTypes()[Index],
                            Text)))
    return failure();
  if (!IsRole || ParseRole({Text.getValue().data(), Text.size()}))
    return success();
  return Op->emitOpError() << Kind << " " << Index << " has the role " << Text << "; data is " << roleNames(false)
                           << ", state is " << roleNames(true);
}

// Two results with a role of state and one name would both be the new value of one entry.
static LogicalResult verifyNewState(FunctionOpInterface Function) {
  llvm::StringMap<unsigned> ResultOf;
  for (unsigned Index = 0; Index < Function.getNumResults(); ++Index) {
    if (!isState(resultRole(Function, Index)))
      continue;
    auto [Known, New] = ResultOf.try_emplace(resultName(Function, Index), Index);
    if (!New)
      return Function->emitOpError() << "results " << Known->second << " and " << Index << " are both the new value of "
                                     << "the state '" << Known->getKey() << "'";
  }
  return success();
}

LogicalResult MpcDialect::verifyRegionArgAttribute(Operation *Op, unsigned, unsigned Index, NamedAttribute Attribute) {
  return verifyRoleAndName(Op, "argument", Index, Attribute);
}

LogicalResult MpcDialect::verifyRegionResultAttribute(Operation *Op, unsigned, unsigned Index,
                                                      NamedAttribute Attribute) {
  if (failed(verifyRoleAndName(Op, "result", Index, Attribute)))
    return failure();
  auto Function = dyn_cast<FunctionOpInterface>(Op);
  // The first result with a role answers for all.
  auto HasRole = [&](unsigned Other) { return bool(Function.getResultAttr(Other, RoleAttrName)); };
  if (!Function || Attribute.getName() != RoleAttrName || llvm::any_of(llvm::seq(Index), HasRole))
    return success();
  return verifyNewState(Function);
}

} // namespace mpc
