// The losses of the micro-steps of an update. Not part of the public API.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "runtime/program.h"

namespace mpc::internal {

/// What an update keeps of its losses from one micro-step to the next: what their checks have found, and how many
/// elements they count. A Program of other losses keeps other numbers. It cannot go on in an update that has begun, as
/// its numbers would begin at the update's middle.
class UpdateLosses {
 public:
  /// Notes the losses of micro-step `micro_step`, from 0, of `count`, which `program` runs. A Program
  /// without a loss, as where all is frozen, goes with every other one. Errors (FAILED_PRECONDITION): the losses are
  /// not those of the micro-steps before it.
  absl::Status Next(const runtime::Program& program, std::int64_t micro_step, std::int64_t count);
  /// The next micro-step goes on in an update that another run has begun.
  void Forget() { kept_.clear(); }

 private:
  /// What the update under way keeps: "first_bad0", "loss_weight", and "" for gradients. Empty: no loss is known.
  std::set<std::string> kept_;
};

}  // namespace mpc::internal
