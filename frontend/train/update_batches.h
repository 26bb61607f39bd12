// How many batches make an update, and where an epoch has complete ones. Not part of the public API.
#pragma once

#include <cstdint>

namespace mpc::internal {

/// The Program that trains; and, where an update takes two, that of the steps before the last one.
inline constexpr char kTrainStep[] = "train_step";
inline constexpr char kAccumulateStep[] = "accumulate_step";

/// The micro-batches of an update: V of them in N processes, of which each runs V/N, one a step.
struct UpdateBatches {
  std::int64_t of_process = 1;  ///< V/N: ModelOptions::accumulation_steps
  std::int64_t processes = 1;   ///< N
  bool is_shared = false;       ///< the processes train data parallel; there may be one

  std::int64_t all() const { return of_process * processes; }
  /// Whether epochs have complete updates alone, so that any number of processes has the same ones. Elsewhere an update
  /// may begin in one epoch and end in the next.
  bool are_whole() const { return is_shared && all() > 1; }
  /// Whether the steps of an update before its last one have a Program of their own: one without collectives.
  bool have_own_program() const { return processes > 1 && of_process > 1; }
  /// Where updates are whole: whether one is complete behind `steps` steps of this process in an epoch.
  bool CompleteBehind(std::int64_t steps) const { return steps % of_process == 0; }
  /// The steps of this process in an epoch of `batches` batches.
  std::int64_t StepsOf(std::int64_t batches) const { return are_whole() ? batches / all() * of_process : batches; }
};

}  // namespace mpc::internal
