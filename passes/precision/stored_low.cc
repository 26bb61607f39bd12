// Parameters without an f32 master: the state itself is low.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "passes/precision/parameter_versions.h"

using namespace mlir;

namespace mpc {

// Whether `Use` is the state operand of the update that computes the version after number `Index`.
static bool isUpdated(const ParameterVersions &Parameter, size_t Index, OpOperand &Use) {
  Operation *Next = Index + 1 < Parameter.Values.size() ? Parameter.Values[Index + 1].getDefiningOp() : nullptr;
  return Use.getOwner() == Next && Use.getOperandNumber() == 0;
}

Type onlyLowType(const ParameterVersions &Parameter) {
  Type Low;
  for (auto [Index, Version] : llvm::enumerate(Parameter.Values)) {
    llvm::DenseSet<Operation *> Known;
    for (const LowUse &Use : findLowUses(Version, /*Parts=*/true)) {
      if (Low && Low != lowTypeOf(Use))
        return {};
      Low = lowTypeOf(Use);
      Known.insert(Use.Cast);
      Known.insert(Use.Movement.begin(), Use.Movement.end());
    }
    // Movement counts only where nothing but casts reads it.
    for (Operation *Movement : llvm::to_vector(Known))
      if (!isa<CastOp>(Movement) &&
          llvm::any_of(Movement->getUsers(), [&](Operation *User) { return !Known.contains(User); }))
        return {};
    for (OpOperand &Use : Version.getUses()) {
      bool Returned = isa<func::ReturnOp>(Use.getOwner()) && Parameter.Result == Use.getOperandNumber();
      if (!Known.contains(Use.getOwner()) && !isUpdated(Parameter, Index, Use) && !Returned)
        return {};
    }
  }
  return Low;
}

// Everything that reads the parameter in f32 does so through one cast.
static Value widen(Value Version, RankedTensorType Wide, llvm::function_ref<bool(OpOperand &)> StaysLow) {
  OpBuilder Builder(Version.getContext());
  Builder.setInsertionPointAfterValue(Version);
  auto Widened = CastOp::create(Builder, Version.getLoc(), Wide, Version);
  Version.replaceUsesWithIf(Widened.getY(),
                            [&](OpOperand &Use) { return Use.getOwner() != Widened && !StaysLow(Use); });
  return Widened.getY();
}

void storeLow(func::FuncOp Function, ParameterVersions &Parameter, Type Low, LowCopies &Copies) {
  Operation *Return = Function.getBody().front().getTerminator();
  // The parameter after the step, whatever computes it.
  std::optional<unsigned> Result = StepSignature(Function).resultOf(Parameter.Argument.getArgNumber());
  for (auto [Index, Version] : llvm::enumerate(Parameter.Values)) {
    auto Wide = cast<RankedTensorType>(Version.getType());
    SmallVector<LowUse> Uses = findLowUses(Version, /*Parts=*/true);
    Version.setType(Wide.clone(Low));
    Value Widened = widen(Version, Wide, [&, Index = Index](OpOperand &Use) {
      return isUpdated(Parameter, Index, Use) || (Use.getOwner() == Return && Result == Use.getOperandNumber());
    });
    for (const LowUse &Use : Uses)
      if (lowTypeOf(Use) == Low)
        Copies.replace(Use, Version);
    if (Widened.use_empty())
      Widened.getDefiningOp()->erase();
  }
  if (!Result)
    return;
  Value After = Return->getOperand(*Result);
  auto Type = cast<RankedTensorType>(After.getType());
  if (Type.getElementType() == Low)
    return;
  OpBuilder Builder(Return);
  Return->setOperand(*Result, CastOp::create(Builder, After.getLoc(), Type.clone(Low), After));
}

} // namespace mpc
