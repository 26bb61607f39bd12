// What the hooks of callbacks write to the state, where several processes train together. Not part of the public API.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "frontend/train/process_training.h"
#include "frontend/train/run_context.h"
#include "runtime/state_store.h"

namespace mpc::internal {

/// Calls hooks of a run. Callbacks run in rank 0, and every rank must have the state that they leave.
class HookWrites {
 public:
  using State = std::function<std::vector<Parameter>()>;

  /// `state` lists the state that all ranks have. `first_alone`: callbacks run in rank 0 and in no other.
  HookWrites(const ProcessTraining& processes, State state, bool first_alone)
      : processes_(processes), state_(std::move(state)), first_alone_(first_alone) {}

  /// Calls the hook `name`, before which every step has ended. Then gives all ranks what it has written in rank 0,
  /// learning rates included. Every rank calls it. Errors: the context's; those of the communicator.
  absl::Status Share(const char* name, RunContext& context, const std::function<void()>& hook);
  /// Calls a hook between steps, and notes what it writes. Errors (FAILED_PRECONDITION): it has written state where
  /// rank 0 alone has callbacks, which the steps of the others would not see.
  absl::Status Refuse(const char* name, const std::function<void()>& hook);
  /// What Refuse has noted since the last call, for AgreeOnStop. Every rank has to have the same.
  WrittenByHooks TakeWritten() { return std::exchange(written_, {}); }

 private:
  using Versions = std::vector<std::pair<std::shared_ptr<runtime::StateEntry>, std::uint64_t>>;
  static Versions VersionsOf(const std::vector<Parameter>& state);
  /// Says to the others that this process is in the hook `name`.
  void NoteHook(const char* name) const;
  /// Adds `entry`, which the hook `name` has written, to what was written. Errors: those of reading it.
  absl::Status NoteWritten(const char* name, const runtime::StateEntry& entry);

  const ProcessTraining& processes_;
  State state_;
  bool first_alone_;
  Versions between_steps_;  ///< the entries that Refuse watches
  WrittenByHooks written_;  ///< by hooks between steps, since the processes have last agreed
};

}  // namespace mpc::internal
