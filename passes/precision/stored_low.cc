// Parameters without an f32 master: the state itself is low.
#include "compiler/dialect/dialect.h"
#include "passes/precision/parameter_versions.h"

using namespace mlir;

namespace mpc {

// Whether `use` is the state operand of the update that computes the version after number `index`.
static bool isUpdated(const ParameterVersions &parameter, size_t index, OpOperand &use) {
  Operation *next = index + 1 < parameter.values.size() ? parameter.values[index + 1].getDefiningOp() : nullptr;
  return use.getOwner() == next && use.getOperandNumber() == 0;
}

Type onlyLowType(const ParameterVersions &parameter) {
  Type low;
  for (auto [index, version] : llvm::enumerate(parameter.values)) {
    llvm::DenseSet<Operation *> known;
    for (const LowUse &use : findLowUses(version, /*parts=*/true)) {
      if (low && low != lowTypeOf(use))
        return {};
      low = lowTypeOf(use);
      known.insert(use.cast);
      known.insert(use.movement.begin(), use.movement.end());
    }
    // Movement counts only where nothing but casts reads it.
    for (Operation *movement : llvm::to_vector(known))
      if (!isa<CastOp>(movement) &&
          llvm::any_of(movement->getUsers(), [&](Operation *user) { return !known.contains(user); }))
        return {};
    for (OpOperand &use : version.getUses()) {
      bool returned = isa<func::ReturnOp>(use.getOwner()) && parameter.result == use.getOperandNumber();
      if (!known.contains(use.getOwner()) && !isUpdated(parameter, index, use) && !returned)
        return {};
    }
  }
  return low;
}

// Everything that reads the parameter in f32 does so through one cast.
static Value widen(Value version, RankedTensorType wide, llvm::function_ref<bool(OpOperand &)> staysLow) {
  OpBuilder builder(version.getContext());
  builder.setInsertionPointAfterValue(version);
  auto widened = CastOp::create(builder, version.getLoc(), wide, version);
  version.replaceUsesWithIf(widened.getY(),
                            [&](OpOperand &use) { return use.getOwner() != widened && !staysLow(use); });
  return widened.getY();
}

void storeLow(func::FuncOp function, ParameterVersions &parameter, std::optional<unsigned> result, Type low,
              LowCopies &copies) {
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [index, version] : llvm::enumerate(parameter.values)) {
    auto wide = cast<RankedTensorType>(version.getType());
    SmallVector<LowUse> uses = findLowUses(version, /*parts=*/true);
    version.setType(wide.clone(low));
    Value widened = widen(version, wide, [&, index = index](OpOperand &use) {
      return isUpdated(parameter, index, use) || (use.getOwner() == terminator && result == use.getOperandNumber());
    });
    for (const LowUse &use : uses)
      if (lowTypeOf(use) == low)
        copies.replace(use, version);
    if (widened.use_empty())
      widened.getDefiningOp()->erase();
  }
  if (!result)
    return;
  Value after = terminator->getOperand(*result);
  auto type = cast<RankedTensorType>(after.getType());
  if (type.getElementType() == low)
    return;
  OpBuilder builder(terminator);
  terminator->setOperand(*result, CastOp::create(builder, after.getLoc(), type.clone(low), after));
}

} // namespace mpc
