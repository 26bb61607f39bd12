// The random numbers of a step while it is traced. Not part of the public API.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "frontend/graph/parameter.h"
#include "frontend/graph/step_state.h"

namespace mpc::internal {

/// State of the random generator of one network: seed (i64) and step (i32).
struct RngState {
  Parameter seed;
  Parameter step;
};
RngState MakeRngState(std::uint64_t seed);

/// Numbers the places of a step that draw random numbers: its call sites.
class RandomUses {
 public:
  RandomUses(RngState rng, TracedGraph& graph, StepState& state) : rng_(std::move(rng)), graph_(graph), state_(state) {}

  /// Seed and step of the generator, and the id of this use.
  struct Use {
    Tensor seed;
    Tensor step;
    std::int64_t call_site;
  };
  Use Next();
  std::int64_t next_call_site() const { return next_call_site_; }
  /// Uses from here on have the numbers from `call_site` on, which others have had: they draw the same.
  void Repeat(std::int64_t call_site) { next_call_site_ = call_site; }
  /// Ends a repetition: uses from here on have numbers from `call_site` on that no use has had.
  void Resume(std::int64_t call_site) { next_call_site_ = std::max(next_call_site_, call_site); }
  /// At the end of a training step: moves the generator's step on, if there was a use.
  void AdvanceStep();

 private:
  RngState rng_;
  TracedGraph& graph_;
  StepState& state_;
  std::int64_t next_call_site_ = 0;
  bool used_ = false;
};

}  // namespace mpc::internal
