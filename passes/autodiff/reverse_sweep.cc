#include "passes/autodiff/reverse_sweep.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

/// How many operations of a path a message lists before it leaves out the middle.
static constexpr size_t MaxPathNotes = 8;

ReverseSweep::ReverseSweep(Block &Body, ArrayRef<Input> Inputs, Operation *End) : Body(Body), End(End), Inputs(Inputs) {
  markActive();
}

llvm::iterator_range<Block::iterator> ReverseSweep::operations() {
  return {Body.begin(), End ? End->getIterator() : Body.end()};
}

//===-- Activity -------------------------------------------------------------------------------------------------===//

bool ReverseSweep::dependsOnInputs(Operation &Op) const {
  // A region reads the values around it.
  WalkResult Found = Op.walk([&](Operation *Nested) {
    bool Depends = llvm::any_of(Nested->getOperands(), [&](Value Operand) { return Active.contains(Operand); });
    return Depends ? WalkResult::interrupt() : WalkResult::advance();
  });
  return Found.wasInterrupted();
}

void ReverseSweep::markActive() {
  for (const Input &In : Inputs)
    Active.insert(In.Value);
  for (Operation &Op : operations()) {
    if (isa<StopGradientOp>(Op) || !dependsOnInputs(Op))
      continue;
    for (Value Result : Op.getResults())
      // Where nothing computes in a type, a derivative that reaches it is an error, not zero.
      if (isFloating(Result) || isCastOnly(elementOf(Result)))
        Active.insert(Result);
  }
}

//===-- The sweep ------------------------------------------------------------------------------------------------===//

namespace {

/// Marks each new operation and gives it the scope of the forward operation it comes from.
class BackwardListener final : public OpBuilder::Listener {
public:
  void setSource(Operation *Op) { Scope = Op ? scopeOf(Op) : ScopeAttr(); }
  void notifyOperationInserted(Operation *Op, OpBuilder::InsertPoint) override {
    markBackward(Op);
    if (Scope)
      setScope(Op, Scope);
  }

private:
  ScopeAttr Scope;
};

} // namespace

FailureOr<SmallVector<Value>> ReverseSweep::run(Value LossValue, Value LossCotangent) {
  Loss = LossValue;
  Contributions[Loss].push_back(LossCotangent);

  SmallVector<Operation *> Forward;
  for (Operation &Op : operations())
    Forward.push_back(&Op);

  BackwardListener Listener;
  OpBuilder Builder(Loss.getContext(), &Listener);
  Builder.setInsertionPoint(&Body, operations().end());
  for (Operation *Op : llvm::reverse(Forward)) {
    Listener.setSource(Op);
    if (failed(differentiate(*Op, Builder)))
      return failure();
  }

  SmallVector<Value> Gradients;
  DenseMap<Value, Value> Summed;
  for (const Input &In : Inputs) {
    auto [Entry, New] = Summed.try_emplace(In.Value);
    if (New) {
      Listener.setSource(ReachedThrough.lookup(In.Value));
      Entry->second = cotangentOf(In.Value, Builder);
    }
    Gradients.push_back(Entry->second);
  }
  return Gradients;
}

LogicalResult ReverseSweep::differentiate(Operation &Op, OpBuilder &Builder) {
  bool Reached = llvm::any_of(Op.getResults(), [&](Value Result) { return Contributions.contains(Result); });
  // What depends on no input needs no rule: what makes the loss or an input may be such an operation.
  if (!Reached || !dependsOnInputs(Op))
    return success();
  auto Differentiable = dyn_cast<DifferentiableOpInterface>(Op);
  if (!Differentiable)
    return reportMissingRule(Op);

  SmallVector<Value> ResultCotangents;
  for (Value Result : Op.getResults())
    ResultCotangents.push_back(cotangentOf(Result, Builder));
  SmallVector<bool> Needed;
  for (Value Operand : Op.getOperands())
    Needed.push_back(Active.contains(Operand));
  FailureOr<SmallVector<Value>> Cotangents = Differentiable.buildVjp(Builder, ResultCotangents, Needed);
  if (failed(Cotangents))
    return failure();
  if (Cotangents->size() != Op.getNumOperands())
    return Op.emitOpError() << "has a derivative rule that returns " << Cotangents->size() << " cotangents for "
                            << Op.getNumOperands() << " operands";

  for (auto [Operand, Cotangent, IsNeeded] : llvm::zip_equal(Op.getOperands(), *Cotangents, Needed)) {
    if (!IsNeeded || !Cotangent)
      continue;
    if (Cotangent.getType() != Operand.getType())
      return Op.emitOpError() << "has a derivative rule that returns " << Cotangent.getType() << " for an operand of "
                              << Operand.getType();
    Contributions[Operand].push_back(Cotangent);
    ReachedThrough.try_emplace(Operand, &Op);
  }
  return success();
}

Value ReverseSweep::cotangentOf(Value V, OpBuilder &Builder) {
  auto Entry = Contributions.find(V);
  if (Entry == Contributions.end())
    return nullptr;
  if (Entry->second.size() == 1)
    return Entry->second.front();
  Operation *Source = V.getDefiningOp() ? V.getDefiningOp() : ReachedThrough.lookup(V);
  Value Sum = SumNOp::create(Builder, Source ? Source->getLoc() : V.getLoc(), V.getType(), Entry->second);
  Entry->second.assign({Sum});
  return Sum;
}

//===-- Diagnostics ----------------------------------------------------------------------------------------------===//

SmallVector<Operation *> ReverseSweep::pathFromLoss(Operation &Op) const {
  SmallVector<Operation *> Path;
  for (Operation *Current = &Op;;) {
    auto Reached = llvm::find_if(Current->getResults(), [&](Value Result) { return Contributions.contains(Result); });
    if (*Reached == Loss)
      break;
    Current = ReachedThrough.lookup(*Reached);
    Path.push_back(Current);
  }
  std::reverse(Path.begin(), Path.end());
  return Path;
}

SmallVector<Operation *> ReverseSweep::pathToInput(Operation &Op, Value &Reached) const {
  SmallVector<Operation *> Path;
  Operation *Current = &Op;
  while (true) {
    Current->walk([&](Operation *Nested) {
      auto Operand = llvm::find_if(Nested->getOperands(), [&](Value V) { return Active.contains(V); });
      if (Operand == Nested->operand_end())
        return WalkResult::advance();
      Reached = *Operand;
      return WalkResult::interrupt();
    });
    Current = Reached.getDefiningOp();
    if (!Current || llvm::any_of(Inputs, [&](const Input &In) { return In.Value == Reached; }))
      return Path;
    Path.push_back(Current);
  }
}

static void attachPath(InFlightDiagnostic &Error, ArrayRef<Operation *> Path, StringRef First) {
  size_t Hidden = Path.size() > MaxPathNotes ? Path.size() - MaxPathNotes : 0;
  for (auto [Index, Op] : llvm::enumerate(Path)) {
    if (Hidden && Index >= MaxPathNotes / 2 && Index < MaxPathNotes / 2 + Hidden) {
      if (Index == MaxPathNotes / 2)
        Error.attachNote(Op->getLoc()) << "(" << Hidden << " more operations)";
      continue;
    }
    Error.attachNote(Op->getLoc()) << (Index == 0 ? First : StringRef("which is computed by ")) << describeWithCell(Op);
  }
}

LogicalResult ReverseSweep::reportMissingRule(Operation &Op) const {
  Value Reached;
  SmallVector<Operation *> ToInput = pathToInput(Op, Reached);
  auto Named = llvm::find_if(Inputs, [&](const Input &In) { return In.Value == Reached; });
  InFlightDiagnostic Error = Op.emitError();
  Error << describeWithCell(&Op) << " has no derivative rule (VJP), but the gradient of " << Named->Name
        << " passes through it; mpc.stop_gradient on its operands makes it a constant";
  attachPath(Error, pathFromLoss(Op), "from the loss: computed by ");
  attachPath(Error, ToInput, "its operand is computed by ");
  Error.attachNote(Reached.getLoc()) << "from " << Named->Name;
  return Error;
}

} // namespace mpc
