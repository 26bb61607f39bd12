#include "compiler/dialect/target_model.h"

#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> EmitError, StringRef Name, StringRef, bool, bool) {
  return Name.empty() ? EmitError() << "a target has no name" : LogicalResult(success());
}

TargetAttr targetOf(Operation *Op) {
  MpcDialect::TargetAttrHelper Helper = dialectOf(Op).getTargetAttrHelper();
  for (Operation *Around = Op; Around; Around = Around->getParentOp())
    if (TargetAttr Target = Helper.getAttr(Around))
      return Target;
  return TargetAttr::get(Op->getContext(), "cpu", /*arch=*/"", /*tf32=*/false, /*winograd=*/false);
}

FailureOr<std::unique_ptr<TargetModel>> targetModelOf(Operation *Op) {
  const auto *Known = dialectOf(Op).getRegisteredInterface<TargetModels>();
  if (!Known)
    return Op->emitError() << "no targets are registered in this context";
  llvm::Expected<std::unique_ptr<TargetModel>> Model = Known->resolve(targetOf(Op));
  if (!Model)
    return Op->emitError() << llvm::toString(Model.takeError());
  return std::move(*Model);
}

} // namespace mpc
