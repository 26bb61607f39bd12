#include "passes/precision/network_parts.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "passes/precision/label_slice.h"
#include "passes/precision/op_precision.h"

using namespace mlir;

namespace mpc {

// Arithmetic and movement between two pieces of matrix work.
static bool isPointwiseOrReduction(AmpClass ampClass) {
  return ampClass == AmpClass::Clear || ampClass == AmpClass::Infer || ampClass == AmpClass::Deny;
}

NetworkParts::NetworkParts(ModuleOp module) {
  collectNetwork(module);
  collectDifferentiated(module);
  collectLabels(module);
}

// The operations of a function without those that update state: what follows from a gradient, and what only such
// operations read.
static SmallVector<Operation *> withoutUpdates(func::FuncOp function) {
  llvm::DenseSet<Value> behind;
  llvm::DenseSet<Operation *> updates;
  SmallVector<Operation *> others;
  function.walk([&](Operation *op) {
    bool follows = llvm::any_of(op->getOperands(), [&](Value operand) { return behind.contains(operand); });
    auto request = dyn_cast<BackwardOp>(op);
    bool isGradient = isMarkedBackward(op) || (request && !request.getByValues());
    if (follows || isGradient)
      behind.insert_range(op->getResults());
    if (follows && !isGradient && !request && !op->hasTrait<OpTrait::IsTerminator>())
      updates.insert(op);
    else if (!follows && !isGradient)
      others.push_back(op);
  });
  for (Operation *op : llvm::reverse(others))
    if (!op->use_empty() && !isa<BackwardOp>(op) &&
        llvm::all_of(op->getUsers(), [&](Operation *user) { return updates.contains(user); }))
      updates.insert(op);
  llvm::erase_if(others, [&](Operation *op) { return updates.contains(op); });
  return others;
}

// Without any scope (hand-written IR) every function but the training steps themselves is a network.
void NetworkParts::collectNetwork(ModuleOp module) {
  bool anyScope = false;
  module.walk([&](Operation *op) {
    ScopeAttr scope = scopeOf(op);
    anyScope |= bool(scope);
    // A gradient has the scope of what it is the gradient of.
    if (scope && (scope.getNetwork() || !scope.getLevel().empty()) && !isMarkedBackward(op))
      network.insert(op);
  });
  if (anyScope)
    return;
  for (auto function : module.getOps<func::FuncOp>()) {
    bool isStep = function.walk([](ValueAndGradOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (!isStep)
      network.insert_range(withoutUpdates(function));
  }
}

// The value that value_and_grad or backward differentiates, before a scaler multiplies it. Behind autodiff the mark of
// the value's operation stands for the request. Null for any other operation.
static Value valueDifferentiatedBy(Operation *request) {
  Value loss;
  if (isMarkedDifferentiated(request)) {
    loss = request->getResult(0);
  } else if (auto backward = dyn_cast<BackwardOp>(request)) {
    loss = backward.getLoss();
  } else if (auto step = dyn_cast<ValueAndGradOp>(request)) {
    func::FuncOp callee = step.getFunction();
    if (!callee || callee.isExternal())
      return {};
    auto terminator = dyn_cast<func::ReturnOp>(callee.getBody().front().getTerminator());
    if (terminator && terminator.getNumOperands() > 0)
      loss = terminator.getOperand(0);
  }
  while (loss && loss.getDefiningOp<ScaleLossOp>())
    loss = loss.getDefiningOp<ScaleLossOp>().getLoss();
  return loss;
}

// A loss written by hand inside the network ends in the differentiated value. The arithmetic that leads to it (square,
// mean), back to the last matrix work or norm, is f32.
void NetworkParts::collectDifferentiated(ModuleOp module) {
  module.walk([&](Operation *request) {
    Value loss = valueDifferentiatedBy(request);
    if (!loss)
      return;
    SmallVector<std::pair<Operation *, bool>> worklist{{loss.getDefiningOp(), true}};
    while (!worklist.empty()) {
      auto [op, givesValue] = worklist.pop_back_val();
      auto amp = dyn_cast_or_null<AmpOpInterface>(op);
      if (!amp || !network.contains(op) || isa<CastOp>(op))
        continue;
      if (givesValue)
        differentiatedValue.insert(op);
      bool replacement = differentiated.insert(op).second;
      if (!isPointwiseOrReduction(amp.getAmpClass()) || !replacement)
        continue;
      // Data movement hands the question on to what it moves.
      bool moves = has<Property::HandsOnValue>(op);
      for (Value operand : op->getOperands()) {
        auto producer = dyn_cast_or_null<AmpOpInterface>(operand.getDefiningOp());
        if (producer && isAssignable(operand) && isPointwiseOrReduction(producer.getAmpClass()))
          worklist.push_back({producer, givesValue && moves});
        else if (producer && givesValue && moves)
          worklist.push_back({producer, true});
      }
    }
  });
}

bool NetworkParts::isDifferentiatedBy(Operation *op) const {
  return llvm::any_of(op->getUses(), [](OpOperand &use) {
    auto request = dyn_cast<BackwardOp>(use.getOwner());
    return request && llvm::is_contained(request.getWrt(), use.get());
  });
}

// Labels never pass through a low type, whatever the network does to them before its loss.
void NetworkParts::collectLabels(ModuleOp module) {
  module.walk([&](AmpOpInterface loss) {
    if (loss.getAmpClass() != AmpClass::Loss || loss->getNumOperands() < 2)
      return;
    llvm::SetVector<Operation *> slice = labelSlice(loss->getOperand(1));
    labels.insert(slice.begin(), slice.end());
  });
}

} // namespace mpc
