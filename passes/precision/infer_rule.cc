// Operation types, and the rule that keeps arithmetic on f32 results in f32.
#include "passes/precision/op_precision.h"

using namespace mlir;

namespace mpc {

bool takesPrecision(Operation *op) {
  ArrayRef<unsigned> stayF32 = cast<AmpOpInterface>(op).getF32Results();
  return llvm::any_of(op->getResults(), [&](OpResult result) {
    return isAssignable(result) && !llvm::is_contained(stayF32, result.getResultNumber());
  });
}

void assignTypes(Operation *op, Type element, OpPrecision &precision) {
  auto amp = cast<AmpOpInterface>(op);
  Type f32 = Float32Type::get(op->getContext());
  auto assign = [&](auto values, ArrayRef<unsigned> stayF32, SmallVectorImpl<Type> &types) {
    types.clear();
    for (auto [index, v] : llvm::enumerate(values)) {
      bool pinned = llvm::is_contained(stayF32, index);
      types.push_back(!isAssignable(v) ? elementOf(v) : pinned ? f32 : element);
    }
  };
  assign(op->getOperands(), amp.getF32Operands(), precision.operands);
  assign(op->getResults(), amp.getF32Results(), precision.results);
  if (llvm::none_of(op->getResults(), [](Value v) { return isa<FloatType>(elementOf(v)); }))
    llvm::fill(precision.operands, Type());
}

PrecisionAttr toAttribute(Operation *op, const OpPrecision &precision) {
  // A result that stays f32 whatever the rule says counts where there is no other.
  Type decided, ofKept;
  ArrayRef<unsigned> stayF32 = cast<AmpOpInterface>(op).getF32Results();
  for (auto [index, element] : llvm::enumerate(precision.results)) {
    Type &first = llvm::is_contained(stayF32, index) ? ofKept : decided;
    if (!first && isa_and_nonnull<FloatType>(element))
      first = element;
  }
  auto reason = PrecisionReasonAttr::get(op->getContext(), *precision.rule, precision.detail);
  return PrecisionAttr::get(op->getContext(), decided ? decided : ofKept, reason, precision.isUsers,
                            precision.isFolded);
}

namespace {

class InferRule {
public:
  InferRule(const DecidedOperations &decided, OpenOperations &open) : open(open) {
    for (const auto &[op, precision] : decided)
      for (auto [result, element] : llvm::zip_equal(op->getResults(), precision.results))
        if (isAssignable(result) && element && element.isF32())
          worklist.push_back(result);
    // Statistics and states that the operation itself declares f32.
    for (const auto &[op, slot] : open)
      for (unsigned index : cast<AmpOpInterface>(op).getF32Results())
        worklist.push_back(op->getResult(index));
  }

  void run() {
    while (!worklist.empty())
      for (OpOperand &use : worklist.pop_back_val().getUses())
        reach(use);
  }

private:
  void reach(OpOperand &use) {
    Operation *op = use.getOwner();
    auto found = open.find(op);
    if (found == open.end())
      return;
    auto amp = cast<AmpOpInterface>(op);
    OpenOperation &slot = found->second;
    bool lowPinned = slot.ampClass == AmpClass::Allow || slot.isLow.value_or(false);
    if (lowPinned || llvm::is_contained(amp.getF32Operands(), use.getOperandNumber()) || !reached.insert(op).second)
      return;
    if (slot.ampClass != AmpClass::Clear && !slot.isLow)
      slot.decideBy(PrecisionRule::InferRule, /*low=*/false);
    for (OpResult result : op->getResults())
      if (isAssignable(result) && !llvm::is_contained(amp.getF32Results(), result.getResultNumber()))
        worklist.push_back(result);
  }

  OpenOperations &open;
  SmallVector<Value> worklist;
  llvm::DenseSet<Operation *> reached;
};

} // namespace

void applyInferRule(const DecidedOperations &decided, OpenOperations &open) { InferRule(decided, open).run(); }

} // namespace mpc
