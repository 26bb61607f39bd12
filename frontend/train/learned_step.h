// What traces have told of a step of the user's own. Not part of the public
// API.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/graph/step_trace.h"

namespace mpc::internal {

/// The state and the learning rates of a training step that does not name its optimizers. They are known once it has
/// been traced: to learn what a checkpoint loads, or to be compiled.
class LearnedStep {
 public:
  using NamedRates = std::vector<std::pair<std::string, Parameter>>;

  /// Learns from a trace that was not compiled.
  void NoteTraced(std::vector<Parameter> state, StepFacts facts);
  /// Learns from a compiled step, whose Program has its state.
  void NoteCompiled(const StepFacts& facts) { rates_ = facts.rates; }

  /// The state that only a trace has told of. It is empty where parts of `step` have been replaced since.
  std::vector<Parameter> StateOf(nn::Cell* step) const;
  /// The learning rates, as StepFacts has them.
  const NamedRates& rates() const { return rates_; }

 private:
  std::vector<Parameter> traced_state_;
  StepFacts traced_facts_;
  NamedRates rates_;
};

}  // namespace mpc::internal
