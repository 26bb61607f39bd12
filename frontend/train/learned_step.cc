#include "frontend/train/learned_step.h"

namespace mpc::internal {

void LearnedStep::NoteTraced(std::vector<Parameter> state, StepFacts facts) {
  traced_state_ = std::move(state);
  traced_facts_ = std::move(facts);
}

std::vector<Parameter> LearnedStep::StateOf(nn::Cell* step) const {
  return IsCurrent(traced_facts_, traced_state_, step) ? traced_state_ : std::vector<Parameter>();
}

}  // namespace mpc::internal
