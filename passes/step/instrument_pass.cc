// Turns a step into one that measures its values instead of updating state.
//
//   func.func @step(%w: ..., %v: ..., %x: ..., %rate: ...) -> ... {
//     %g = mpc.mul %w, %x {mpc.backward} in <"net"> : tensor<4xf32>
//     %w2, %v2 = mpc.momentum %w, %v, %g, %rate : ...
//     return %w2, %v2 : ...
// becomes
//   func.func @step(%w: ..., %v: ..., %x: ..., %rate: ...) -> (...,
//       tensor<f32> {mpc.state = #mpc.state<record, "statistics|net|mul|backward|0|f32|largest">}) ... {
//     ...
//     %g = mpc.mul %w, %x {mpc.backward} in <"net"> : tensor<4xf32>
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
bool isMeasured(Operation &Op) { return !Op.hasTrait<StateUpdate>() && !has<Property::BesideNetwork>(&Op); }

class InstrumentPass : public impl::InstrumentPassBase<InstrumentPass> {
public:
  using InstrumentPassBase::InstrumentPassBase;

  void runOnOperation() override {
    func::FuncOp Function = getOperation();
    // A function that a step calls is measured by its results.
    Block *Body = onlyBlock(Function);
    if (!Body || isSequence(Function))
      return;
    auto Return = dyn_cast<func::ReturnOp>(Body->getTerminator());
    if (!Return || isInstrumented(Function))
      return;
    measureArguments(Function);
    for (Operation &Op : llvm::make_early_inc_range(Body->without_terminator()))
      if (isMeasured(Op))
        measureResults(Op);
    replaceResults(Function, Return);
  }

private:
  static bool isInstrumented(func::FuncOp Function) { return !Function.getBody().getOps<TensorStatisticsOp>().empty(); }

  void measureArguments(func::FuncOp Function) {
    OpBuilder Builder = OpBuilder::atBlockBegin(&Function.getBody().front());
    for (BlockArgument Argument : Function.getArguments()) {
      Role Own = roleOf(Argument).value_or(Role::kInput);
      bool Wanted = Own == Role::kParameter || Own == Role::kInput || Own == Role::kStatistic;
      if (Wanted && isFloating(Argument))
        measure(Builder, Argument, nameOf(Argument), roleName(Own), "forward", 0);
    }
  }

  // Casts have no Cell of their own: that of what they cast, else of what reads them.
  static ScopeAttr nearestScope(Operation &Op) {
    if (ScopeAttr Own = scopeOf(&Op))
      return Own;
    for (Value Operand : Op.getOperands())
      if (Operation *Producer = Operand.getDefiningOp())
        if (ScopeAttr Scope = scopeOf(Producer))
          return Scope;
    for (Operation *User : Op.getUsers())
      if (ScopeAttr Scope = scopeOf(User))
        return Scope;
    return {};
  }

  void measureResults(Operation &Op) {
    ScopeAttr Scope = nearestScope(Op);
    OpBuilder Builder(Op.getContext());
    Builder.setInsertionPointAfter(&Op);
    for (OpResult Result : Op.getResults())
      if (isFloating(Result) && !Result.use_empty())
        measure(Builder, Result, Scope ? Scope.getPath() : "", Op.getName().stripDialect(),
                isMarkedBackward(&Op) ? "backward" : "forward", Result.getResultNumber());
  }

  void measure(OpBuilder &Builder, Value V, StringRef Path, StringRef What, StringRef Direction, unsigned Index) {
    auto Statistics = TensorStatisticsOp::create(
        Builder, V.getLoc(), RankedTensorType::get({256}, Builder.getI32Type()),
        RankedTensorType::get({}, Builder.getI32Type()), RankedTensorType::get({}, Builder.getF32Type()), V);
    std::string Name =
        llvm::formatv("statistics|{0}|{1}|{2}|{3}|{4}|", Path, What, Direction, Index, typeText(elementOf(V))).str();
    constexpr StringLiteral Fields[] = {"exponents", "zeros", "largest"};
    for (auto [Field, Result] : llvm::zip_equal(Fields, Statistics->getResults()))
      Measured.push_back({Result, Name + Field.str()});
  }

  // The step returns what was measured and no state: running it changes nothing.
  void replaceResults(func::FuncOp Function, func::ReturnOp Return) {
    Builder B(Function.getContext());
    SmallVector<Value> Values;
    SmallVector<Type> Types;
    SmallVector<DictionaryAttr> Attributes;
    for (auto &[V, Name] : Measured) {
      Values.push_back(V);
      Types.push_back(V.getType());
      Attributes.push_back(describedBy(makeState(B.getContext(), Role::kRecord, Name)));
    }
    Return->setOperands(Values);
    Function.setFunctionType(B.getFunctionType(Function.getArgumentTypes(), Types));
    Function.setAllResultAttrs(Attributes);
    eraseDeadOperations(Function.getBody().front());
  }

  SmallVector<std::pair<Value, std::string>> Measured;
};

} // namespace

} // namespace mpc
