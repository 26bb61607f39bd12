#include "compiler/ranges/range_analysis.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/ranges/interval.h"
#include "compiler/dialect/ranges/transfer.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/ranges/stored_format.h"
#include "runtime/scaler_field.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace mpc::ranges {

RangeAnalysis::RangeAnalysis(func::FuncOp function, const Assumptions &assumptions) : assumptions(assumptions) {
  for (BlockArgument argument : function.getArguments())
    store(argument, ofArgument(argument));
  visit(function.getBody().front());
}

Range RangeAnalysis::ofArgument(BlockArgument argument) const {
  if (auto given = assumptions.arguments.find(argument); given != assumptions.arguments.end())
    return given->second;
  std::optional<Role> role = roleOf(argument);
  StringRef name = nameOf(argument);
  auto known = assumptions.state.find(name);
  if (known != assumptions.state.end())
    return known->second;
  // A low copy is the parameter, which store() rounds.
  if (role == Role::kDerived)
    if (auto source = assumptions.state.find(stateOf(argument).getOf()); source != assumptions.state.end())
      return source->second;
  if (role == Role::kScaler && ScalerFieldOf(name.str()) == ScalerField::kScale) {
    Range scale = assumptions.lossScale;
    scale.isScaled = true;
    return scale;
  }
  if (!isInput(role))
    return Range();
  Range input = assumptions.inputs.value_or(Range());
  if (std::isnan(input.typical))
    input.typical = 1;
  return isa<FloatType>(getElementTypeOrSelf(argument.getType())) ? input : Range();
}

void RangeAnalysis::store(Value value, Range range) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return;
  tighten(range, type.getShape());
  std::optional<StoredFormat> format = StoredFormat::of(type.getElementType());
  if (!format) {
    // Elements are exact, but norms of them are computed in f64.
    scaleNorms(range, 1 + kArithmetic);
    stored[value] = range;
    return;
  }
  if (format->isLow && value.getDefiningOp())
    low.push_back({value, range, format->overflow(range), format->underflow(range)});
  format->round(range, type.getShape());
  stored[value] = range;
}

void RangeAnalysis::visit(Block &block) {
  for (Operation &op : block.without_terminator())
    visit(op);
}

void RangeAnalysis::visit(Operation &op) {
  if (auto fusion = dyn_cast<FusionOp>(op)) {
    Block &body = fusion.getBody().front();
    for (auto [argument, input] : zip_equal(body.getArguments(), fusion.getInputs()))
      stored[argument] = Range(rangeOf(input));
    visit(body);
    for (auto [result, value] : zip_equal(fusion.getResults(), body.getTerminator()->getOperands()))
      stored[result] = Range(rangeOf(value));
    return;
  }
  for (Region &region : op.getRegions())
    for (Block &block : region)
      visit(block);

  Operands operands{&op, {}, {}};
  bool isScaled = false;
  for (Value operand : op.getOperands()) {
    operands.ranges.push_back(rangeOf(operand));
    isScaled |= operands.ranges.back().isScaled;
  }
  SmallVector<Range> results(op.getNumResults());
  StringRef name = op.getName().stripDialect();
  if (Transfer transfer = isa_and_nonnull<MpcDialect>(op.getDialect()) ? transferOf(name) : nullptr) {
    operands.attributes = kernelAttributes(&op);
    transfer(operands, results);
  }
  for (auto [value, range] : zip_equal(op.getResults(), results)) {
    range.isScaled = isScaled;
    store(value, range);
  }
}

std::vector<Operation *> RangeAnalysis::chainOf(Value value, size_t length) const {
  std::vector<Operation *> chain;
  while (Operation *op = value.getDefiningOp()) {
    chain.push_back(op);
    Value largest;
    for (Value operand : op->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type || !isa<FloatType>(type.getElementType()))
        continue;
      if (!largest || rangeOf(operand).magnitude() > rangeOf(largest).magnitude())
        largest = operand;
    }
    if (!largest || chain.size() == length)
      break;
    value = largest;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

StringMap<Range> initialState(func::FuncOp init) {
  Assumptions nothing;
  RangeAnalysis analysis(init, nothing);
  StringMap<Range> state;
  Operation *terminator = init.getBody().front().getTerminator();
  for (auto [index, value] : enumerate(terminator->getOperands()))
    state[resultName(init, unsigned(index))] = analysis.rangeOf(value);
  return state;
}

} // namespace mpc::ranges
