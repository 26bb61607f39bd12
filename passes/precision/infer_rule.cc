// Operation types, and the rule that keeps arithmetic on f32 results in f32.
#include "passes/precision/op_precision.h"

using namespace mlir;

namespace mpc {

bool hasSlot(Operation *Op) {
  ArrayRef<unsigned> StayF32 = cast<AmpOpInterface>(Op).getF32Results();
  return llvm::any_of(Op->getResults(), [&](OpResult Result) {
    return isAssignable(Result) && !llvm::is_contained(StayF32, Result.getResultNumber());
  });
}

void assignTypes(Operation *Op, Type Element, OpPrecision &Precision) {
  auto Amp = cast<AmpOpInterface>(Op);
  Type F32 = Float32Type::get(Op->getContext());
  auto Assign = [&](auto Values, ArrayRef<unsigned> StayF32, SmallVectorImpl<Type> &Types) {
    Types.clear();
    for (auto [Index, V] : llvm::enumerate(Values)) {
      bool Pinned = llvm::is_contained(StayF32, Index);
      Types.push_back(!isAssignable(V) ? elementOf(V) : Pinned ? F32 : Element);
    }
  };
  Assign(Op->getOperands(), Amp.getF32Operands(), Precision.Operands);
  Assign(Op->getResults(), Amp.getF32Results(), Precision.Results);
  if (llvm::none_of(Op->getResults(), [](Value V) { return isa<FloatType>(elementOf(V)); }))
    llvm::fill(Precision.Operands, Type());
}

PrecisionAttr toAttribute(Operation *Op, const OpPrecision &Precision) {
  // A result that stays f32 whatever the rule says counts where there is no other.
  Type Decided, OfKept;
  ArrayRef<unsigned> StayF32 = cast<AmpOpInterface>(Op).getF32Results();
  for (auto [Index, Element] : llvm::enumerate(Precision.Results)) {
    Type &First = llvm::is_contained(StayF32, Index) ? OfKept : Decided;
    if (!First && isa_and_nonnull<FloatType>(Element))
      First = Element;
  }
  auto Reason = PrecisionReasonAttr::get(Op->getContext(), *Precision.Rule, Precision.Detail);
  return PrecisionAttr::get(Op->getContext(), Decided ? Decided : OfKept, Reason, Precision.IsUsers,
                            Precision.IsFolded);
}

namespace {

class InferRule {
public:
  InferRule(const DecidedOperations &Decided, OpenOperations &Open) : Open(Open) {
    for (const auto &[Op, Precision] : Decided)
      for (auto [Result, Element] : llvm::zip_equal(Op->getResults(), Precision.Results))
        if (isAssignable(Result) && Element && Element.isF32())
          Worklist.push_back(Result);
    // Statistics and states that the operation itself declares f32.
    for (const auto &[Op, Slot] : Open)
      for (unsigned Index : cast<AmpOpInterface>(Op).getF32Results())
        Worklist.push_back(Op->getResult(Index));
  }

  void run() {
    while (!Worklist.empty())
      for (OpOperand &Use : Worklist.pop_back_val().getUses())
        reach(Use);
  }

private:
  void reach(OpOperand &Use) {
    Operation *Op = Use.getOwner();
    auto Found = Open.find(Op);
    if (Found == Open.end())
      return;
    auto Amp = cast<AmpOpInterface>(Op);
    OpenOperation &Slot = Found->second;
    bool LowPinned = Slot.Class == AmpClass::Allow || Slot.IsLow.value_or(false);
    if (LowPinned || llvm::is_contained(Amp.getF32Operands(), Use.getOperandNumber()) || !Reached.insert(Op).second)
      return;
    if (Slot.Class != AmpClass::Clear && !Slot.IsLow)
      Slot.decideBy(PrecisionRule::InferRule, /*Low=*/false);
    for (OpResult Result : Op->getResults())
      if (isAssignable(Result) && !llvm::is_contained(Amp.getF32Results(), Result.getResultNumber()))
        Worklist.push_back(Result);
  }

  OpenOperations &Open;
  SmallVector<Value> Worklist;
  llvm::DenseSet<Operation *> Reached;
};

} // namespace

void applyInferRule(const DecidedOperations &Decided, OpenOperations &Open) { InferRule(Decided, Open).run(); }

} // namespace mpc
