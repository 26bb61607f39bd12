// Turns a step into one that measures its values instead of updating state.
//
//   func.func @step(%w: ..., %v: ..., %x: ..., %rate: ...) -> ... {
//     %g = mpc.mul %w, %x backward in <"net"> : tensor<4xf32>
//     %w2, %v2 = mpc.momentum %w, %v, %g, %rate : ...
//     return %w2, %v2 : ...
// becomes
//   func.func @step(%w: ..., %v: ..., %x: ..., %rate: ...) -> (...,
//       tensor<f32> {mpc.state = #mpc.state<record, "statistics|net|mul|backward|0|f32|largest">}) ... {
//     ...
//     %g = mpc.mul %w, %x backward in <"net"> : tensor<4xf32>
//     %exponents, %zeros, %largest = mpc.tensor_statistics %g : ...
//     return ..., %exponents, %zeros, %largest : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/computations.h"
#include "passes/function_body.h"
#include "passes/passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_INSTRUMENTPASS
#include "passes/passes.h.inc"

namespace {

// Whether the operation is measured. Operations on gradients after the backward pass are not: they compute nothing that
// a network or its gradients hold.
bool isMeasured(Operation &op) { return !op.hasTrait<StateUpdate>() && !has<Property::BesideNetwork>(&op); }

class InstrumentPass : public impl::InstrumentPassBase<InstrumentPass> {
public:
  using InstrumentPassBase::InstrumentPassBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    // A function that a step calls is measured by its results.
    Block *body = onlyBlock(function);
    if (!body || isSequence(function))
      return;
    auto terminator = dyn_cast<func::ReturnOp>(body->getTerminator());
    if (!terminator || isInstrumented(function))
      return;
    measureArguments(function);
    for (Operation &op : llvm::make_early_inc_range(body->without_terminator()))
      if (isMeasured(op))
        measureResults(op);
    replaceResults(function, terminator);
  }

private:
  static bool isInstrumented(func::FuncOp function) { return !function.getBody().getOps<TensorStatisticsOp>().empty(); }

  void measureArguments(func::FuncOp function) {
    OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
    for (BlockArgument argument : function.getArguments()) {
      Role own = roleOf(argument).value_or(Role::kInput);
      bool wanted = own == Role::kParameter || own == Role::kInput || own == Role::kStatistic;
      if (wanted && isFloating(argument))
        measure(builder, argument, nameOf(argument), roleName(own), "forward", 0);
    }
  }

  // Casts have no Cell of their own: that of what they cast, else of what reads them.
  static ScopeAttr nearestScope(Operation &op) {
    if (ScopeAttr own = scopeOf(&op))
      return own;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        if (ScopeAttr scope = scopeOf(producer))
          return scope;
    for (Operation *user : op.getUsers())
      if (ScopeAttr scope = scopeOf(user))
        return scope;
    return {};
  }

  void measureResults(Operation &op) {
    ScopeAttr scope = nearestScope(op);
    OpBuilder builder(op.getContext());
    builder.setInsertionPointAfter(&op);
    for (OpResult result : op.getResults())
      if (isFloating(result) && !result.use_empty())
        measure(builder, result, scope ? scope.getPath() : "", op.getName().stripDialect(),
                isMarkedBackward(&op) ? "backward" : "forward", result.getResultNumber());
  }

  void measure(OpBuilder &builder, Value v, StringRef path, StringRef what, StringRef direction, unsigned index) {
    auto statistics = TensorStatisticsOp::create(
        builder, v.getLoc(), RankedTensorType::get({256}, builder.getI32Type()),
        RankedTensorType::get({}, builder.getI32Type()), RankedTensorType::get({}, builder.getF32Type()), v);
    std::string name =
        llvm::formatv("statistics|{0}|{1}|{2}|{3}|{4}|", path, what, direction, index, typeText(elementOf(v))).str();
    constexpr StringLiteral fields[] = {"exponents", "zeros", "largest"};
    for (auto [field, result] : llvm::zip_equal(fields, statistics->getResults()))
      measured.push_back({result, name + field.str()});
  }

  // The step returns what was measured and no state: running it changes nothing.
  void replaceResults(func::FuncOp function, func::ReturnOp terminator) {
    Builder b(function.getContext());
    SmallVector<Value> values;
    SmallVector<Type> types;
    SmallVector<DictionaryAttr> attributes;
    for (auto &[v, name] : measured) {
      values.push_back(v);
      types.push_back(v.getType());
      attributes.push_back(describedBy(makeState(b.getContext(), Role::kRecord, name)));
    }
    terminator->setOperands(values);
    function.setFunctionType(b.getFunctionType(function.getArgumentTypes(), types));
    function.setAllResultAttrs(attributes);
    eraseDeadOperations(function.getBody().front());
  }

  SmallVector<std::pair<Value, std::string>> measured;
};

} // namespace

} // namespace mpc
