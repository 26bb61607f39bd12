// The capsule of a step that several processes share, from what each has of it. Not part of the public API.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/state/step_capsule.h"
#include "kernels/communicator.h"

namespace mpc::internal {

/// Why micro-batches of several shapes make no capsule.
inline constexpr char kDifferentPrograms[] = "its micro-batches ran different Programs, as those of several shapes do";

/// Every rank calls it with the capsule of its own runs, without `traced` and `options`, or with why it has none.
/// Afterwards rank 0 has the capsule of all ranks, and what others have is of no use. Where a rank has none, all ranks
/// have its error, which names it. Of state that all have alike one copy travels nowhere: ranks compare hashes first.
///
/// Errors: those of the communicator, which a lost process ends. Then nothing was gathered.
absl::Status GatherCapsule(Communicator& group, absl::StatusOr<StepCapsule>& capsule);

}  // namespace mpc::internal
