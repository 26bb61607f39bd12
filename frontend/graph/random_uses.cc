#include "frontend/graph/random_uses.h"

namespace mpc::internal {

RngState MakeRngState(std::uint64_t seed) {
  RngState state;
  const std::int64_t seed_bits = static_cast<std::int64_t>(seed);
  state.seed = Parameter(Tensor::Scalar<std::int64_t>(seed_bits), {.requires_grad = false, .role = Role::kRng});
  state.seed.set_name("rng.seed");
  state.step = Parameter(Tensor::Scalar<std::int32_t>(0), {.requires_grad = false, .role = Role::kRng});
  state.step.set_name("rng.step");
  return state;
}

RandomUses::Use RandomUses::Next() {
  used_ = true;
  return {state_.Use(rng_.seed).current, state_.Use(rng_.step).current, next_call_site_++};
}

void RandomUses::AdvanceStep() {
  if (!used_) return;
  const Tensor step = state_.Read(rng_.step);
  state_.Assign(rng_.step, graph_.Emit("increment", {step}, {})[0]);
}

}  // namespace mpc::internal
