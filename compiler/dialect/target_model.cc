#include "compiler/dialect/target_model.h"

#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

LogicalResult TargetAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name, StringRef, bool, bool) {
  return name.empty() ? emitError() << "a target has no name" : LogicalResult(success());
}

TargetAttr targetOf(Operation *op) {
  MpcDialect::TargetAttrHelper helper = dialectOf(op).getTargetAttrHelper();
  for (Operation *around = op; around; around = around->getParentOp())
    if (TargetAttr target = helper.getAttr(around))
      return target;
  return TargetAttr::get(op->getContext(), "cpu", /*arch=*/"", /*tf32=*/false, /*winograd=*/false);
}

FailureOr<std::unique_ptr<TargetModel>> targetModelOf(Operation *op) {
  const auto *known = dialectOf(op).getRegisteredInterface<TargetModels>();
  if (!known)
    return op->emitError() << "no targets are registered in this context";
  llvm::Expected<std::unique_ptr<TargetModel>> model = known->resolve(targetOf(op));
  if (!model)
    return op->emitError() << llvm::toString(model.takeError());
  return std::move(*model);
}

} // namespace mpc
