// Expands mpc.value_and_grad and mpc.backward into the forward graph and its reverse, and mpc.custom_vjp into its body.
//
//   func.func private @loss(%w: ..., %x: ..., %t: ...) -> tensor<f32> {
//     %y = mpc.matmul %x, %w : ...
//     %l = mpc.mse %y, %t : ...
//     return %l : ...
//   }
//   ...
//   %l, %dw = mpc.value_and_grad @loss(%w, %x, %t) seed(%one) {wrt = [0]} : ...
// becomes
//   %y = mpc.matmul %x, %w : ...
//   %l = mpc.mse %y, %t : ...
//   %dy = mpc.mse_grad %one, %y, %t backward : ...
//   %dw = mpc.matmul %x, %dy {transpose_a = true} backward : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "passes/autodiff/flat_body.h"
#include "passes/autodiff/reverse_sweep.h"
#include "passes/computations.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_AUTODIFFPASS
#include "passes/passes.h.inc"

namespace {

/// Expands every request for a derivative of a module.
class Expander {
public:
  explicit Expander(ModuleOp module);
  LogicalResult run();

private:
  /// Expands what \p function differentiates, callees first.
  LogicalResult expandIn(func::FuncOp function);
  LogicalResult expand(ValueAndGradOp op);
  LogicalResult expand(BackwardOp op);
  /// Ends the expansion of \p op. Inlines the rules that are called from \p first on, and erases \p op and the dead
  /// operations among \p made.
  LogicalResult finish(Operation *op, Block::iterator first, ArrayRef<Operation *> made);
  /// Marks what gives \p loss, so that mpc-amp knows the loss behind this pass. In front of it mpc-amp needs no mark.
  void markLoss(Value loss);
  /// Inlines every call between \p begin and \p end that \p wanted accepts.
  LogicalResult inlineCalls(Block::iterator begin, Block::iterator end, llvm::function_ref<bool(func::CallOp)> wanted);
  /// Puts the bodies of the functions that custom_vjp names in its place.
  LogicalResult inlineCustomVjps(func::FuncOp function);
  void removeUnusedCallees();

  func::FuncOp lookup(Operation *user, FlatSymbolRefAttr name) {
    return symbols.lookupNearestSymbolFrom<func::FuncOp>(user, name);
  }

  ModuleOp module;
  /// Whether mpc-amp has run.
  bool isDecided;
  SymbolTableCollection symbols;
  DenseSet<func::FuncOp> visited;
  /// Whether the custom_vjps of a function are gone (true) or being inlined.
  DenseMap<func::FuncOp, bool> inlining;
  SetVector<func::FuncOp> inlined;
};

class AutodiffPass : public impl::AutodiffPassBase<AutodiffPass> {
public:
  using AutodiffPassBase::AutodiffPassBase;
  void runOnOperation() override {
    if (failed(Expander(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace

//===-- Names of operands ----------------------------------------------------------------------------------------===//

/// "operand 2 ('fc1.weight')".
static std::string describeOperand(int64_t position, StringRef name) {
  std::string text = "operand " + std::to_string(position);
  if (!name.empty())
    text += " ('" + name.str() + "')";
  return text;
}

static std::string describeOperand(ValueAndGradOp op, func::FuncOp callee, int64_t position) {
  StringRef name = nameOf(op.getInputs()[position]);
  return describeOperand(position, name.empty() ? argumentName(callee, position) : name);
}

//===-- Losses ----------------------------------------------------------------------------------------------------===//

Expander::Expander(ModuleOp module) : module(module) {
  auto decided = [](Operation *op) { return precisionOf(op) ? WalkResult::interrupt() : WalkResult::advance(); };
  isDecided = module.walk(decided).wasInterrupted();
}

void Expander::markLoss(Value loss) {
  while (auto scaled = loss.getDefiningOp<ScaleLossOp>())
    loss = scaled.getLoss();
  auto amp = dyn_cast_or_null<AmpOpInterface>(loss.getDefiningOp());
  // An operation of the class Loss is f32 without a mark.
  if (amp && !isDecided && amp.getAmpClass() != AmpClass::Exempt && amp.getAmpClass() != AmpClass::Loss)
    markDifferentiated(amp);
}

//===-- Expansion ------------------------------------------------------------------------------------------------===//

/// The seed in the type of the loss.
static Value lossCotangent(OpBuilder &builder, Location loc, Value seed, RankedTensorType loss) {
  auto seedType = cast<RankedTensorType>(seed.getType());
  if (seedType.getElementType() != loss.getElementType()) {
    seed = CastOp::create(builder, loc, RankedTensorType::get(seedType.getShape(), loss.getElementType()), seed);
    markBackward(seed.getDefiningOp());
  }
  if (seed.getType() != loss) {
    seed = BroadcastToOp::create(builder, loc, loss, seed, loss.getShape());
    markBackward(seed.getDefiningOp());
  }
  return seed;
}

/// A constant of zeros.
static Value zeros(OpBuilder &builder, Location loc, RankedTensorType type) {
  auto elements = DenseElementsAttr::get(type, builder.getZeroAttr(type.getElementType()));
  return ConstantOp::create(builder, loc, type, elements);
}

/// The gradient by an input that the loss does not depend on, which \p message is made to say.
static Value zeroGradient(OpBuilder &builder, Location loc, const ReverseSweep::Input &in, InFlightDiagnostic message) {
  message << " does not depend on " << in.name << "; its gradient is zero";
  return zeros(builder, loc, cast<RankedTensorType>(in.value.getType()));
}

static bool isRuleCall(func::CallOp call) { return isMarkedBackward(call); }

LogicalResult Expander::inlineCalls(Block::iterator begin, Block::iterator end,
                                    llvm::function_ref<bool(func::CallOp)> wanted) {
  SmallVector<func::CallOp> calls;
  for (Operation &op : llvm::make_range(begin, end))
    if (auto call = dyn_cast<func::CallOp>(op); call && wanted(call))
      calls.push_back(call);
  for (func::CallOp call : calls) {
    FailureOr<FlatBody> flat = flattenFunction(lookup(call, call.getCalleeAttr()), call, symbols);
    if (failed(flat))
      return failure();
    if (isRuleCall(call))
      for (Operation &op : *flat->body)
        markBackward(&op);
    call.replaceAllUsesWith(splice(*flat, call, call.getOperands()));
    call.erase();
    inlined.insert_range(flat->inlined);
  }
  return success();
}

LogicalResult Expander::finish(Operation *op, Block::iterator first, ArrayRef<Operation *> made) {
  if (failed(inlineCalls(first, op->getIterator(), isRuleCall)))
    return failure();
  op->erase();
  eraseDeadOperations(made);
  return success();
}

LogicalResult Expander::expand(ValueAndGradOp op) {
  func::FuncOp callee = lookup(op, op.getCalleeAttr());
  FailureOr<FlatBody> flat = flattenFunction(callee, op, symbols);
  if (failed(flat))
    return failure();
  Block &body = *flat->body;

  SmallVector<ReverseSweep::Input> inputs;
  for (int64_t position : op.getWrt())
    inputs.push_back({body.getArgument(position), describeOperand(op, callee, position)});
  BlockArgument seed = body.addArgument(op.getSeed().getType(), op.getLoc());
  ReverseSweep sweep(body, inputs);
  OpBuilder builder(op.getContext());
  builder.setInsertionPointToEnd(&body);
  Value loss = flat->results.front();
  markLoss(loss);
  // The sweep visits the operations before these two, which have no part in the forward graph.
  Value cotangent = lossCotangent(builder, op.getLoc(), seed, cast<RankedTensorType>(loss.getType()));
  FailureOr<SmallVector<Value>> gradients = sweep.run(loss, cotangent);
  if (failed(gradients))
    return failure();

  builder.setInsertionPointToEnd(&body);
  for (auto [gradient, in] : llvm::zip_equal(*gradients, inputs)) {
    if (!gradient)
      gradient = zeroGradient(builder, op.getLoc(), in, op.emitWarning() << "the loss of '" << op.getCallee() << "'");
    flat->results.push_back(gradient);
  }

  // The block moves into the caller.
  SmallVector<Operation *> moved;
  for (Operation &moving : body)
    if (auto call = dyn_cast<func::CallOp>(moving); !call || !isRuleCall(call))
      moved.push_back(&moving);
  auto first = body.empty() ? op->getIterator() : body.begin();
  op.replaceAllUsesWith(splice(*flat, op, op.getOperands()));
  if (failed(finish(op, first, moved)))
    return failure();
  inlined.insert_range(flat->inlined);
  return success();
}

LogicalResult Expander::expand(BackwardOp op) {
  Block &body = *op->getBlock();
  if (failed(inlineCalls(body.begin(), op->getIterator(), [](func::CallOp) { return true; })))
    return failure();
  SmallVector<ReverseSweep::Input> inputs;
  for (auto [index, operand] : llvm::enumerate(op.getWrt()))
    inputs.push_back({operand, describeOperand(index, nameOf(operand))});
  Operation *before = op->getPrevNode();
  markLoss(op.getLoss());
  ReverseSweep sweep(body, inputs, op);
  OpBuilder builder(op);
  Value cotangent = lossCotangent(builder, op.getLoc(), op.getSeed(), cast<RankedTensorType>(op.getLoss().getType()));
  FailureOr<SmallVector<Value>> gradients = sweep.run(op.getLoss(), cotangent);
  if (failed(gradients))
    return failure();
  for (auto [gradient, in] : llvm::zip_equal(*gradients, inputs))
    if (!gradient)
      gradient = zeroGradient(builder, op.getLoc(), in, op.emitRemark() << "the loss");
  op.replaceAllUsesWith(*gradients);
  auto first = before ? std::next(before->getIterator()) : body.begin();
  SmallVector<Operation *> created;
  for (Operation &replacement : llvm::make_range(first, op->getIterator()))
    if (!isa<func::CallOp>(replacement))
      created.push_back(&replacement);
  return finish(op, first, created);
}

LogicalResult Expander::expandIn(func::FuncOp function) {
  if (!visited.insert(function).second)
    return success();
  // Callees first: the derivative of a derivative differentiates what the inner one became.
  SmallVector<Operation *> requests;
  WalkResult walk = function.walk([&](Operation *op) {
    SmallVector<FlatSymbolRefAttr, 2> callees;
    if (has<Property::GradientRequest>(op))
      requests.push_back(op);
    if (auto request = dyn_cast<ValueAndGradOp>(op))
      callees.push_back(request.getCalleeAttr());
    else if (auto call = dyn_cast<func::CallOp>(op))
      callees.push_back(call.getCalleeAttr());
    else if (auto custom = dyn_cast<CustomVjpOp>(op))
      callees = {custom.getCalleeAttr(), custom.getVjpAttr()};
    for (FlatSymbolRefAttr callee : callees)
      if (failed(expandIn(lookup(op, callee))))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  for (Operation *request : requests) {
    auto backward = dyn_cast<BackwardOp>(request);
    if (failed(backward ? expand(backward) : expand(cast<ValueAndGradOp>(request))))
      return failure();
  }
  return success();
}

//===-- Custom rules ---------------------------------------------------------------------------------------------===//

LogicalResult Expander::inlineCustomVjps(func::FuncOp function) {
  if (!inlining.try_emplace(function, false).second)
    return success();
  SmallVector<CustomVjpOp> customs;
  function.walk([&](CustomVjpOp op) { customs.push_back(op); });
  for (CustomVjpOp op : customs) {
    func::FuncOp callee = lookup(op, op.getCalleeAttr());
    if (failed(inlineCustomVjps(callee)))
      return failure();
    if (!inlining.lookup(callee))
      return op.emitOpError() << "cannot be expanded: function '" << callee.getName() << "' calls itself";
    FailureOr<FlatBody> flat = flattenFunction(callee, op, symbols);
    if (failed(flat))
      return failure();
    op.replaceAllUsesWith(splice(*flat, op, op.getInputs()));
    inlined.insert_range(flat->inlined);
    inlined.insert(lookup(op, op.getVjpAttr()));
    op.erase();
  }
  inlining[function] = true;
  return success();
}

//===-- The module -----------------------------------------------------------------------------------------------===//

void Expander::removeUnusedCallees() {
  for (bool changed = true; changed;) {
    changed = false;
    for (func::FuncOp function : llvm::to_vector(inlined)) {
      if (!function.isPrivate() || !SymbolTable::symbolKnownUseEmpty(function, module))
        continue;
      inlined.remove(function);
      function.erase();
      changed = true;
    }
  }
}

LogicalResult Expander::run() {
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  for (func::FuncOp function : functions)
    if (failed(expandIn(function)))
      return failure();
  for (func::FuncOp function : functions)
    if (failed(inlineCustomVjps(function)))
      return failure();
  removeUnusedCallees();
  return success();
}

} // namespace mpc
