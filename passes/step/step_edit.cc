// Arguments, results and small operations that are added to a step.
//
//   func.func @step(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}) -> (...) {
//     ...
//     return %w2 : tensor<4xf32>
// becomes, with an argument, a result and one flag of two,
//   func.func @step(%w: ..., %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">})
//       -> (..., tensor<i1> {mpc.state = #mpc.state<record, "finite">}) {
//     ...
//     %finite = mpc.all_of %finite0, %finite1 : tensor<i1>
//     ...
//     return %w2, %finite : tensor<4xf32>, tensor<i1>
#include "passes/step/step_edit.h"

using namespace mlir;

namespace mpc {

StepEdit::StepEdit(func::FuncOp function, const StepFlow &flow)
    : function(function), flow(flow), builder(function.getContext()), loc(flow.getRequests().front().op->getLoc()),
      returnOp(cast<func::ReturnOp>(function.getBody().front().getTerminator())) {}

Value StepEdit::addArgument(Type type, Role given, StringRef name, StringRef of) {
  (void)function.insertArgument(function.getNumArguments(), type,
                                describedBy(makeState(function.getContext(), given, name, of)), loc);
  return function.getArguments().back();
}

void StepEdit::appendResult(Value result, Role given, StringRef name) {
  (void)function.insertResult(function.getNumResults(), result.getType(),
                              describedBy(makeState(function.getContext(), given, name)));
  returnOp->insertOperands(returnOp->getNumOperands(), result);
}

Value StepEdit::constant(int32_t number) { return integerScalar(builder, loc, number); }

Value integerScalar(OpBuilder &builder, Location loc, int32_t number) {
  auto type = scalarType(builder.getI32Type());
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, builder.getI32IntegerAttr(number)));
}

Operation *later(Operation *a, Operation *b) { return !a || (b && a->isBeforeInBlock(b)) ? b : a; }

Value reduceFlags(OpBuilder &builder, ArrayRef<Value> given, bool any, std::optional<Location> loc) {
  if (given.size() == 1)
    return given.front();
  Operation *latest = nullptr;
  for (Value flag : given)
    latest = later(latest, flag.getDefiningOp());
  OpBuilder::InsertionGuard restore(builder);
  builder.setInsertionPointAfter(latest);
  Type flag = scalarType(builder.getI1Type());
  Location place = loc.value_or(latest->getLoc());
  if (any)
    return AnyOfOp::create(builder, place, flag, given);
  return AllOfOp::create(builder, place, flag, given);
}

} // namespace mpc
