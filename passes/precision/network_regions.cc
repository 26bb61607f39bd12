#include "passes/precision/network_regions.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "passes/precision/label_slice.h"
#include "passes/precision/op_precision.h"

using namespace mlir;

namespace mpc {

// Arithmetic and movement between two pieces of matrix work.
static bool isPointwiseOrReduction(AmpClass Class) {
  return Class == AmpClass::Clear || Class == AmpClass::Infer || Class == AmpClass::Deny;
}

NetworkRegions::NetworkRegions(ModuleOp Module) {
  collectNetwork(Module);
  collectDifferentiated(Module);
  collectLabels(Module);
}

// Without any scope (hand-written IR) every function but the training steps themselves is a network.
void NetworkRegions::collectNetwork(ModuleOp Module) {
  bool AnyScope = false;
  Module.walk([&](Operation *Op) {
    ScopeAttr Scope = scopeOf(Op);
    AnyScope |= bool(Scope);
    if (Scope && (Scope.getNetwork() || !Scope.getLevel().empty()))
      Network.insert(Op);
  });
  if (AnyScope)
    return;
  for (auto Function : Module.getOps<func::FuncOp>()) {
    bool IsStep = Function.walk([](ValueAndGradOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (!IsStep)
      Function.walk([&](Operation *Op) { Network.insert(Op); });
  }
}

// The value that value_and_grad or backward differentiates, before a scaler multiplies it; null for any other
// operation.
static Value differentiatedValue(Operation *Request) {
  Value Loss;
  if (auto Backward = dyn_cast<BackwardOp>(Request)) {
    Loss = Backward.getLoss();
  } else if (auto Step = dyn_cast<ValueAndGradOp>(Request)) {
    auto Callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(Step, Step.getCalleeAttr());
    if (!Callee || Callee.isExternal())
      return {};
    auto Return = dyn_cast<func::ReturnOp>(Callee.getBody().front().getTerminator());
    if (Return && Return.getNumOperands() > 0)
      Loss = Return.getOperand(0);
  }
  while (Loss && Loss.getDefiningOp<ScaleLossOp>())
    Loss = Loss.getDefiningOp<ScaleLossOp>().getLoss();
  return Loss;
}

// A loss written by hand inside the network ends in the differentiated value. The arithmetic that leads to it (square,
// mean), back to the last matrix work or norm, is f32.
void NetworkRegions::collectDifferentiated(ModuleOp Module) {
  Module.walk([&](Operation *Request) {
    Value Loss = differentiatedValue(Request);
    if (!Loss)
      return;
    SmallVector<std::pair<Operation *, bool>> Worklist{{Loss.getDefiningOp(), true}};
    while (!Worklist.empty()) {
      auto [Op, GivesValue] = Worklist.pop_back_val();
      auto Amp = dyn_cast_or_null<AmpOpInterface>(Op);
      if (!Amp || !Network.contains(Op) || isa<CastOp>(Op))
        continue;
      if (GivesValue)
        DifferentiatedValue.insert(Op);
      bool New = Differentiated.insert(Op).second;
      if (!isPointwiseOrReduction(Amp.getAmpClass()) || !New)
        continue;
      // Data movement hands the question on to what it moves.
      bool Moves = has<Property::HandsOnValue>(Op);
      for (Value Operand : Op->getOperands()) {
        auto Producer = dyn_cast_or_null<AmpOpInterface>(Operand.getDefiningOp());
        if (Producer && isAssignable(Operand) && isPointwiseOrReduction(Producer.getAmpClass()))
          Worklist.push_back({Producer, GivesValue && Moves});
        else if (Producer && GivesValue && Moves)
          Worklist.push_back({Producer, true});
      }
    }
  });
}

bool NetworkRegions::isDifferentiatedBy(Operation *Op) const {
  return llvm::any_of(Op->getUses(), [](OpOperand &Use) {
    auto Request = dyn_cast<BackwardOp>(Use.getOwner());
    return Request && llvm::is_contained(Request.getWrt(), Use.get());
  });
}

// Labels never pass through a low type, whatever the network does to them before its loss.
void NetworkRegions::collectLabels(ModuleOp Module) {
  Module.walk([&](AmpOpInterface Loss) {
    if (Loss.getAmpClass() != AmpClass::Loss || Loss->getNumOperands() < 2)
      return;
    llvm::SetVector<Operation *> Slice = labelSlice(Loss->getOperand(1));
    Labels.insert(Slice.begin(), Slice.end());
  });
}

} // namespace mpc
