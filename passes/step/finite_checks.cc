// Finite checks.
//
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%one) {wrt = array<i64: 0>} : ...
// becomes
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%scale) {wrt = array<i64: 0>} : ...
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw : ...
//
// Sums over micro-steps and processes that may overflow get a check of their own, which has no loss:
//   %finite_sum, %first_bad_sum = mpc.all_finite %one, %zero, %sum : ...
//   %first_bad_of_both = mpc.merge_checks %first_bad, %first_bad_sum : tensor<i32>
//   %finite_both = mpc.equal %first_bad_of_both, %none : ...
#include "passes/step/finite_checks.h"

#include "passes/step/checked_norms.h"

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
  bool hasNorms = microSteps.updates() && norms.countOf(request) > 0;
  findings.push_back(microSteps.soFar(request, {check.getFinite(), check.getFirstBad()}, hasNorms));
}

void FiniteChecks::addCheckOfSums(unsigned request, ArrayRef<Value> sums, bool areScaled) {
  OpBuilder &builder = edit.builder;
  auto number = [&](float value) -> Value {
    RankedTensorType type = scalarType(builder.getF32Type());
    return ConstantOp::create(builder, edit.loc, type, DenseElementsAttr::get(type, builder.getF32FloatAttr(value)));
  };
  Type flag = scalarType(builder.getI1Type()), position = scalarType(builder.getI32Type());
  SmallVector<Value> checked{areScaled ? scalers.scaleOf(request) : number(1), number(0)};
  llvm::append_range(checked, sums);
  auto check = AllFiniteOp::create(builder, edit.loc, TypeRange{flag, position}, checked);
  Value none = edit.constant(-1), found = check.getFirstBad();
  // Before the last micro-step a sum may be that of an earlier update.
  if (Value last = microSteps.getLast())
    found = SelectOp::create(builder, edit.loc, position, last, found, none);
  Value firstBad = MergeChecksOp::create(builder, edit.loc, position, ValueRange{findings[request].firstBad, found});
  findings[request] = {EqualOp::create(builder, edit.loc, flag, firstBad, none), firstBad};
}

Operation *FiniteChecks::endOf(unsigned request) const {
  return findings.empty() ? edit.getRequests()[request].op : findings[request].finite.getDefiningOp();
}

} // namespace mpc
