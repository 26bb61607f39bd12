#include "compiler/dialect/operation_properties.h"

#include "compiler/dialect/dialect.h"

#include <array>
#include <utility>

using namespace mlir;

namespace mpc {

template <std::size_t... Numbers>
static bool hasNumbered(Operation *Op, std::size_t Number, std::index_sequence<Numbers...>) {
  static constexpr std::array<bool (*)(Operation *), sizeof...(Numbers)> Questions = {
      &has<static_cast<Property>(Numbers)>...};
  return Questions[Number](Op);
}

bool has(Operation *Op, Property P) {
  return hasNumbered(Op, static_cast<std::size_t>(P), std::make_index_sequence<getMaxEnumValForProperty() + 1>());
}

template <std::size_t... Numbers>
static std::optional<Phase> firstPhase(Operation *Op, std::index_sequence<Numbers...>) {
  std::optional<Phase> Found;
  auto Ask = [&]<Phase P>() {
    if (Op->hasTrait<InPhase<P>::template Impl>())
      Found = P;
  };
  (Ask.template operator()<static_cast<Phase>(Numbers)>(), ...);
  return Found;
}

std::optional<Phase> ownPhase(Operation *Op) {
  if (Op->hasTrait<StateUpdate>() || isa<GuardedUpdateOp>(Op))
    return Phase::kUpdate;
  return firstPhase(Op, std::make_index_sequence<kPhaseNames.size()>());
}

OperandRange AllFiniteOp::getGradientOperands() { return getOperands().drop_front(); }
OperandRange GlobalNormOp::getGradientOperands() { return getInputs().drop_front(getUnscale() ? 1 : 0); }

Value ReshapeOp::getViewSource() { return getX(); }
Value AllReduceOp::getViewSource() { return getX(); }

Value behindViews(Value V) {
  while (auto View = V.getDefiningOp<ViewLikeOpInterface>())
    V = View.getViewSource();
  return V;
}

} // namespace mpc
