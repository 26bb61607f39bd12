// Weights of micro-batches, with processes=2. The loss leaves elements out, and records how many are left.
//
//   %l, %weight, %dw = mpc.value_and_grad @loss(%w, %x) seed(%one) {wrt = array<i64: 0>} : ...
//   %w2, %v2 = mpc.momentum %w, %v, %dw, %rate : ...
//   return %l, %w2, %v2, %weight : ...
// becomes
//   %weight_share = mpc.mul_scalar %weight {value = 0.5} : ...
//   %weights = mpc.all_reduce %weight_share {processes = 2} : tensor<f32>
//   %nothing = mpc.equal %weights, %zero : ...
//   %divisor = mpc.select %nothing, %one, %weights : ...
//   %weighed = mpc.mul %dw, %weight : ...
//   %share = mpc.mul_scalar %weighed {value = 0.5} : ...
//   %mean = mpc.all_reduce %share {processes = 2} : tensor<4xf32>
//   %mean_of_elements = mpc.div %mean, %divisor : ...
#include "passes/step/loss_weight.h"

#include "compiler/dialect/record_names.h"
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

// A step that records several weights numbers them: "loss_weight", "loss_weight#2".
static bool isWeight(func::FuncOp function, unsigned result) {
  StringRef name = resultName(function, result);
  return resultRole(function, result) == Role::kRecord && name.consume_front(StringRef(kLossWeight)) &&
         (name.empty() || name.starts_with("#"));
}

static FailureOr<Value> findWeight(unsigned request, StepEdit &edit) {
  Value found;
  for (auto [result, value] : llvm::enumerate(edit.returnOp.getOperands())) {
    if (!isWeight(edit.function, result) || !edit.flow.lossReads(request, value.getDefiningOp()) || value == found)
      continue;
    if (found)
      return edit.getRequests()[request].op->emitError()
             << "the loss is a sum of losses that leave elements out, each by a count of its own; loss_weight ="
                " kElements takes one of them in a loss, and loss_weight may be kRows";
    found = value;
  }
  return found;
}

FailureOr<WeightedMean> WeightedMean::of(unsigned request, StepEdit &edit, MicroSteps &microSteps) {
  WeightedMean result;
  if (!microSteps.takesMeans())
    return result;
  FailureOr<Value> found = findWeight(request, edit);
  if (failed(found) || !*found)
    return failed(found) ? FailureOr<WeightedMean>(failure()) : result;
  OpBuilder &builder = edit.builder;
  result.weight = castTo(builder, edit.loc, *found, builder.getF32Type());
  std::string suffix = edit.getRequests().size() == 1 ? "" : std::to_string(request);
  Value mean = microSteps.meanOfWeights("accumulator." + std::string(kLossWeight) + suffix, result.weight);
  Type element = elementOf(mean);
  Value nothing = EqualOp::create(builder, edit.loc, scalarType(builder.getI1Type()), mean,
                                  scalarConstant(builder, edit.loc, element, 0));
  Value one = scalarConstant(builder, edit.loc, element, 1);
  result.divisor = SelectOp::create(builder, edit.loc, mean.getType(), nothing, one, mean);
  return result;
}

template <typename Op> static Value inF32(OpBuilder &builder, Location loc, Value v, Value by) {
  Value wide = castTo(builder, loc, v, builder.getF32Type());
  Value result = Op::create(builder, loc, wide.getType(), wide, by);
  return castTo(builder, loc, result, elementOf(v));
}

Value WeightedMean::weigh(OpBuilder &builder, Location loc, Value term) const {
  return weight ? inF32<MulOp>(builder, loc, term, weight) : term;
}

Value WeightedMean::normalize(OpBuilder &builder, Location loc, Value mean) const {
  return divisor ? inF32<DivOp>(builder, loc, mean, divisor) : mean;
}

} // namespace mpc
