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
//   %dy = mpc.mse_grad %one, %y, %t {mpc.backward} : ...
//   %dw = mpc.matmul %x, %dy {mpc.backward, transpose_a = true} : ...
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
  explicit Expander(ModuleOp Module) : Module(Module) {}
  LogicalResult run();

private:
  /// Expands what \p Function differentiates, callees first.
  LogicalResult expandIn(func::FuncOp Function);
  LogicalResult expand(ValueAndGradOp Op);
  LogicalResult expand(BackwardOp Op);
  /// Ends the expansion of \p Op. Inlines the rules that are called from \p First on, and erases \p Op and the dead
  /// operations among \p Made.
  LogicalResult finish(Operation *Op, Block::iterator First, ArrayRef<Operation *> Made);
  /// Inlines every call between \p Begin and \p End that \p Wanted accepts.
  LogicalResult inlineCalls(Block::iterator Begin, Block::iterator End, llvm::function_ref<bool(func::CallOp)> Wanted);
  /// Puts the bodies of the functions that custom_vjp names in its place.
  LogicalResult inlineCustomVjps(func::FuncOp Function);
  void removeUnusedCallees();

  func::FuncOp lookup(Operation *User, FlatSymbolRefAttr Name) {
    return Symbols.lookupNearestSymbolFrom<func::FuncOp>(User, Name);
  }

  ModuleOp Module;
  SymbolTableCollection Symbols;
  DenseSet<func::FuncOp> Visited;
  /// Whether the custom_vjps of a function are gone (true) or being inlined.
  DenseMap<func::FuncOp, bool> Inlining;
  SetVector<func::FuncOp> Inlined;
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
static std::string describeOperand(int64_t Position, StringRef Name) {
  std::string Text = "operand " + std::to_string(Position);
  if (!Name.empty())
    Text += " ('" + Name.str() + "')";
  return Text;
}

static std::string describeOperand(ValueAndGradOp Op, func::FuncOp Callee, int64_t Position) {
  StringRef Name = nameOf(Op.getInputs()[Position]);
  return describeOperand(Position, Name.empty() ? argumentName(Callee, Position) : Name);
}

//===-- Expansion ------------------------------------------------------------------------------------------------===//

/// The seed in the type of the loss.
static Value lossCotangent(OpBuilder &Builder, Location Loc, Value Seed, RankedTensorType Loss) {
  auto SeedType = cast<RankedTensorType>(Seed.getType());
  if (SeedType.getElementType() != Loss.getElementType()) {
    Seed = CastOp::create(Builder, Loc, RankedTensorType::get(SeedType.getShape(), Loss.getElementType()), Seed);
    markBackward(Seed.getDefiningOp());
  }
  if (Seed.getType() != Loss) {
    Seed = BroadcastToOp::create(Builder, Loc, Loss, Seed, Loss.getShape());
    markBackward(Seed.getDefiningOp());
  }
  return Seed;
}

/// A constant of zeros.
static Value zeros(OpBuilder &Builder, Location Loc, RankedTensorType Type) {
  auto Elements = DenseElementsAttr::get(Type, Builder.getZeroAttr(Type.getElementType()));
  return ConstantOp::create(Builder, Loc, Type, Elements);
}

/// The gradient by an input that the loss does not depend on, which \p Message is made to say.
static Value zeroGradient(OpBuilder &Builder, Location Loc, const ReverseSweep::Input &In, InFlightDiagnostic Message) {
  Message << " does not depend on " << In.Name << "; its gradient is zero";
  return zeros(Builder, Loc, cast<RankedTensorType>(In.Value.getType()));
}

static bool isRuleCall(func::CallOp Call) { return isMarkedBackward(Call); }

LogicalResult Expander::inlineCalls(Block::iterator Begin, Block::iterator End,
                                    llvm::function_ref<bool(func::CallOp)> Wanted) {
  SmallVector<func::CallOp> Calls;
  for (Operation &Op : llvm::make_range(Begin, End))
    if (auto Call = dyn_cast<func::CallOp>(Op); Call && Wanted(Call))
      Calls.push_back(Call);
  for (func::CallOp Call : Calls) {
    FailureOr<FlatBody> Flat = flattenFunction(lookup(Call, Call.getCalleeAttr()), Call, Symbols);
    if (failed(Flat))
      return failure();
    if (isRuleCall(Call))
      for (Operation &Op : *Flat->Body)
        markBackward(&Op);
    Call.replaceAllUsesWith(splice(*Flat, Call, Call.getOperands()));
    Call.erase();
    Inlined.insert_range(Flat->Inlined);
  }
  return success();
}

LogicalResult Expander::finish(Operation *Op, Block::iterator First, ArrayRef<Operation *> Made) {
  if (failed(inlineCalls(First, Op->getIterator(), isRuleCall)))
    return failure();
  Op->erase();
  eraseDeadOperations(Made);
  return success();
}

LogicalResult Expander::expand(ValueAndGradOp Op) {
  func::FuncOp Callee = lookup(Op, Op.getCalleeAttr());
  FailureOr<FlatBody> Flat = flattenFunction(Callee, Op, Symbols);
  if (failed(Flat))
    return failure();
  Block &Body = *Flat->Body;

  SmallVector<ReverseSweep::Input> Inputs;
  for (int64_t Position : Op.getWrt())
    Inputs.push_back({Body.getArgument(Position), describeOperand(Op, Callee, Position)});
  BlockArgument Seed = Body.addArgument(Op.getSeed().getType(), Op.getLoc());
  ReverseSweep Sweep(Body, Inputs);
  OpBuilder Builder(Op.getContext());
  Builder.setInsertionPointToEnd(&Body);
  Value Loss = Flat->Results.front();
  // The sweep visits the operations before these two, which have no part in the forward graph.
  Value Cotangent = lossCotangent(Builder, Op.getLoc(), Seed, cast<RankedTensorType>(Loss.getType()));
  FailureOr<SmallVector<Value>> Gradients = Sweep.run(Loss, Cotangent);
  if (failed(Gradients))
    return failure();

  Builder.setInsertionPointToEnd(&Body);
  for (auto [Gradient, In] : llvm::zip_equal(*Gradients, Inputs)) {
    if (!Gradient)
      Gradient = zeroGradient(Builder, Op.getLoc(), In, Op.emitWarning() << "the loss of '" << Op.getCallee() << "'");
    Flat->Results.push_back(Gradient);
  }

  // The block moves into the caller.
  SmallVector<Operation *> Moved;
  for (Operation &Moving : Body)
    if (auto Call = dyn_cast<func::CallOp>(Moving); !Call || !isRuleCall(Call))
      Moved.push_back(&Moving);
  auto First = Body.empty() ? Op->getIterator() : Body.begin();
  Op.replaceAllUsesWith(splice(*Flat, Op, Op.getOperands()));
  if (failed(finish(Op, First, Moved)))
    return failure();
  Inlined.insert_range(Flat->Inlined);
  return success();
}

LogicalResult Expander::expand(BackwardOp Op) {
  Block &Body = *Op->getBlock();
  if (failed(inlineCalls(Body.begin(), Op->getIterator(), [](func::CallOp) { return true; })))
    return failure();
  SmallVector<ReverseSweep::Input> Inputs;
  for (auto [Index, Operand] : llvm::enumerate(Op.getWrt()))
    Inputs.push_back({Operand, describeOperand(Index, nameOf(Operand))});
  Operation *Before = Op->getPrevNode();
  ReverseSweep Sweep(Body, Inputs, Op);
  OpBuilder Builder(Op);
  Value Cotangent = lossCotangent(Builder, Op.getLoc(), Op.getSeed(), cast<RankedTensorType>(Op.getLoss().getType()));
  FailureOr<SmallVector<Value>> Gradients = Sweep.run(Op.getLoss(), Cotangent);
  if (failed(Gradients))
    return failure();
  for (auto [Gradient, In] : llvm::zip_equal(*Gradients, Inputs))
    if (!Gradient)
      Gradient = zeroGradient(Builder, Op.getLoc(), In, Op.emitRemark() << "the loss");
  Op.replaceAllUsesWith(*Gradients);
  auto First = Before ? std::next(Before->getIterator()) : Body.begin();
  SmallVector<Operation *> Created;
  for (Operation &New : llvm::make_range(First, Op->getIterator()))
    if (!isa<func::CallOp>(New))
      Created.push_back(&New);
  return finish(Op, First, Created);
}

LogicalResult Expander::expandIn(func::FuncOp Function) {
  if (!Visited.insert(Function).second)
    return success();
  // Callees first: the derivative of a derivative differentiates what the inner one became.
  SmallVector<Operation *> Requests;
  WalkResult Walk = Function.walk([&](Operation *Op) {
    SmallVector<FlatSymbolRefAttr, 2> Callees;
    if (has<Property::GradientRequest>(Op))
      Requests.push_back(Op);
    if (auto Request = dyn_cast<ValueAndGradOp>(Op))
      Callees.push_back(Request.getCalleeAttr());
    else if (auto Call = dyn_cast<func::CallOp>(Op))
      Callees.push_back(Call.getCalleeAttr());
    else if (auto Custom = dyn_cast<CustomVjpOp>(Op))
      Callees = {Custom.getCalleeAttr(), Custom.getVjpAttr()};
    for (FlatSymbolRefAttr Callee : Callees)
      if (failed(expandIn(lookup(Op, Callee))))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (Walk.wasInterrupted())
    return failure();
  for (Operation *Request : Requests) {
    auto Backward = dyn_cast<BackwardOp>(Request);
    if (failed(Backward ? expand(Backward) : expand(cast<ValueAndGradOp>(Request))))
      return failure();
  }
  return success();
}

//===-- Custom rules ---------------------------------------------------------------------------------------------===//

LogicalResult Expander::inlineCustomVjps(func::FuncOp Function) {
  if (!Inlining.try_emplace(Function, false).second)
    return success();
  SmallVector<CustomVjpOp> Customs;
  Function.walk([&](CustomVjpOp Op) { Customs.push_back(Op); });
  for (CustomVjpOp Op : Customs) {
    func::FuncOp Callee = lookup(Op, Op.getCalleeAttr());
    if (failed(inlineCustomVjps(Callee)))
      return failure();
    if (!Inlining.lookup(Callee))
      return Op.emitOpError() << "cannot be expanded: function '" << Callee.getName() << "' calls itself";
    FailureOr<FlatBody> Flat = flattenFunction(Callee, Op, Symbols);
    if (failed(Flat))
      return failure();
    Op.replaceAllUsesWith(splice(*Flat, Op, Op.getInputs()));
    Inlined.insert_range(Flat->Inlined);
    Inlined.insert(lookup(Op, Op.getVjpAttr()));
    Op.erase();
  }
  Inlining[Function] = true;
  return success();
}

//===-- The module -----------------------------------------------------------------------------------------------===//

void Expander::removeUnusedCallees() {
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (func::FuncOp Function : llvm::to_vector(Inlined)) {
      if (!Function.isPrivate() || !SymbolTable::symbolKnownUseEmpty(Function, Module))
        continue;
      Inlined.remove(Function);
      Function.erase();
      Changed = true;
    }
  }
}

LogicalResult Expander::run() {
  auto Functions = llvm::to_vector(Module.getOps<func::FuncOp>());
  for (func::FuncOp Function : Functions)
    if (failed(expandIn(Function)))
      return failure();
  for (func::FuncOp Function : Functions)
    if (failed(inlineCustomVjps(Function)))
      return failure();
  removeUnusedCallees();
  return success();
}

} // namespace mpc
