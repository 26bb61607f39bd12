#include "compiler/dialect/operation_properties.h"

#include "compiler/dialect/dialect.h"

#include <array>
#include <utility>

using namespace mlir;

namespace mpc {

template <std::size_t... Numbers>
static bool hasNumbered(Operation *op, std::size_t number, std::index_sequence<Numbers...>) {
  static constexpr std::array<bool (*)(Operation *), sizeof...(Numbers)> questions = {
      &has<static_cast<Property>(Numbers)>...};
  return questions[number](op);
}

bool has(Operation *op, Property p) {
  return hasNumbered(op, static_cast<std::size_t>(p), std::make_index_sequence<getMaxEnumValForProperty() + 1>());
}

template <std::size_t... Numbers>
static std::optional<Phase> firstPhase(Operation *op, std::index_sequence<Numbers...>) {
  std::optional<Phase> found;
  auto ask = [&]<Phase P>() {
    if (op->hasTrait<InPhase<P>::template Impl>())
      found = P;
  };
  (ask.template operator()<static_cast<Phase>(Numbers)>(), ...);
  return found;
}

std::optional<Phase> ownPhase(Operation *op) {
  if (op->hasTrait<StateUpdate>() || isa<GuardedUpdateOp>(op))
    return Phase::kUpdate;
  return firstPhase(op, std::make_index_sequence<kPhaseNames.size()>());
}

OperandRange AllFiniteOp::getGradientOperands() { return getOperands().drop_front(); }
OperandRange GlobalNormOp::getGradientOperands() { return getInputs().drop_front(getUnscale() ? 1 : 0); }

Value ReshapeOp::getViewSource() { return getX(); }
Value AllReduceWaitOp::getViewSource() { return getX(); }

bool isWait(Operation *op) { return isa<ViewLikeOpInterface>(op) && !isMemoryEffectFree(op); }

Value behindViews(Value v) {
  while (auto view = v.getDefiningOp<ViewLikeOpInterface>())
    v = view.getViewSource();
  return v;
}

} // namespace mpc
