// Finite checks.
//
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%one) {wrt = array<i64: 0>} : ...
// becomes
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%scale) {wrt = array<i64: 0>} : ...
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw : ...
#include "passes/step/finite_checks.h"

using namespace mlir;

namespace mpc {

void FiniteChecks::addChecks() {
  if (scalers.empty())
    return;
  for (auto [request, asked] : llvm::enumerate(edit.getRequests()))
    addCheck(asked, request);
}

void FiniteChecks::addCheck(const GradientRequest &asked, unsigned request) {
  OpBuilder &builder = edit.builder;
  Value scale = scalers.scaleOf(request);
  asked.seed().set(scale);
  builder.setInsertionPointAfter(asked.op);
  SmallVector<Type> types{scalarType(builder.getI1Type()), scalarType(builder.getI32Type())};
  SmallVector<Value> checked{scale, asked.loss};
  llvm::append_range(checked, asked.gradients);
  auto check = AllFiniteOp::create(builder, asked.op->getLoc(), types, checked);
  checks.push_back(check);
  findings.push_back(microSteps.soFar(request, {check.getFinite(), check.getFirstBad()}));
}

Operation *FiniteChecks::endOf(unsigned request) const {
  return findings.empty() ? edit.getRequests()[request].op : findings[request].finite.getDefiningOp();
}

} // namespace mpc
