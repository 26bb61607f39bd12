// Expands mpc.value_and_grad: the callee's body, then its reverse.
#include "compiler/dialect/dialect.h"
#include "passes/autodiff/flat_body.h"
#include "passes/autodiff/reverse_sweep.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_AUTODIFFPASS
#include "passes/passes.h.inc"

namespace {

/// Expands every mpc.value_and_grad of a module.
class Expander {
public:
  explicit Expander(ModuleOp Module) : Module(Module) {}
  LogicalResult run();

private:
  /// Expands what \p Function differentiates, callees first.
  LogicalResult expandIn(func::FuncOp Function);
  LogicalResult expand(ValueAndGradOp Op);
  void removeUnusedCallees();

  ModuleOp Module;
  SymbolTableCollection Symbols;
  DenseSet<func::FuncOp> Visited;
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

/// `mpc.name` of the argument that \p Operand is, or of the callee's argument; "" without one.
static StringRef argumentName(Value Operand, func::FuncOp Callee, int64_t Position) {
  if (auto Argument = dyn_cast<BlockArgument>(Operand))
    if (auto Function = dyn_cast_or_null<func::FuncOp>(Argument.getOwner()->getParentOp()))
      if (auto Name = Function.getArgAttrOfType<StringAttr>(Argument.getArgNumber(), NameAttrName))
        return Name.getValue();
  if (auto Name = Callee.getArgAttrOfType<StringAttr>(Position, NameAttrName))
    return Name.getValue();
  return "";
}

/// "operand 2 ('fc1.weight')".
static std::string describeOperand(ValueAndGradOp Op, func::FuncOp Callee, int64_t Position) {
  std::string Text = "operand " + std::to_string(Position);
  if (StringRef Name = argumentName(Op.getInputs()[Position], Callee, Position); !Name.empty())
    Text += " ('" + Name.str() + "')";
  return Text;
}

/// The seed in the type of the loss.
static Value lossCotangent(OpBuilder &Builder, Location Loc, Value Seed, RankedTensorType Loss) {
  auto SeedType = cast<RankedTensorType>(Seed.getType());
  if (SeedType.getElementType() != Loss.getElementType())
    Seed = CastOp::create(Builder, Loc, RankedTensorType::get(SeedType.getShape(), Loss.getElementType()), Seed);
  if (Seed.getType() != Loss)
    Seed = BroadcastToOp::create(Builder, Loc, Loss, Seed, Loss.getShape());
  return Seed;
}

/// A constant of zeros.
static Value zeros(OpBuilder &Builder, Location Loc, RankedTensorType Type) {
  auto Elements = DenseElementsAttr::get(Type, Builder.getZeroAttr(Type.getElementType()));
  return ConstantOp::create(Builder, Loc, Type, Elements);
}

LogicalResult Expander::expand(ValueAndGradOp Op) {
  auto Callee = Symbols.lookupNearestSymbolFrom<func::FuncOp>(Op, Op.getCalleeAttr());
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

  SmallVector<Value> Outputs(Flat->Results);
  Builder.setInsertionPointToEnd(&Body);
  for (auto [Gradient, In] : llvm::zip_equal(*Gradients, Inputs)) {
    if (!Gradient) {
      Op.emitWarning() << "the loss of '" << Op.getCallee() << "' does not depend on " << In.Name
                       << "; its gradient is zero";
      Gradient = zeros(Builder, Op.getLoc(), cast<RankedTensorType>(In.Value.getType()));
    }
    Outputs.push_back(Gradient);
  }

  // From here on nothing fails: the block moves into the caller.
  for (auto [Argument, Operand] : llvm::zip_equal(Body.getArguments(), Op.getOperands())) {
    llvm::replace(Outputs, Value(Argument), Operand);
    Argument.replaceAllUsesWith(Operand);
  }
  SmallVector<Operation *> Moved;
  for (Operation &Moving : Body)
    Moved.push_back(&Moving);
  Op->getBlock()->getOperations().splice(Op->getIterator(), Body.getOperations());
  Op.replaceAllUsesWith(Outputs);
  Op.erase();
  for (Operation *Dead : llvm::reverse(Moved))
    if (isOpTriviallyDead(Dead))
      Dead->erase();
  Inlined.insert_range(Flat->Inlined);
  return success();
}

LogicalResult Expander::expandIn(func::FuncOp Function) {
  if (!Visited.insert(Function).second)
    return success();
  // Callees first: the derivative of a derivative differentiates what the inner one became.
  SmallVector<ValueAndGradOp> Requests;
  WalkResult Walk = Function.walk([&](Operation *Op) {
    FlatSymbolRefAttr Callee;
    if (auto Request = dyn_cast<ValueAndGradOp>(Op)) {
      Requests.push_back(Request);
      Callee = Request.getCalleeAttr();
    } else if (auto Call = dyn_cast<func::CallOp>(Op)) {
      Callee = Call.getCalleeAttr();
    }
    if (!Callee)
      return WalkResult::advance();
    return WalkResult(expandIn(Symbols.lookupNearestSymbolFrom<func::FuncOp>(Op, Callee)));
  });
  if (Walk.wasInterrupted())
    return failure();
  for (ValueAndGradOp Request : Requests)
    if (failed(expand(Request)))
      return failure();
  return success();
}

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
  for (func::FuncOp Function : llvm::to_vector(Module.getOps<func::FuncOp>()))
    if (failed(expandIn(Function)))
      return failure();
  removeUnusedCallees();
  return success();
}

} // namespace mpc
