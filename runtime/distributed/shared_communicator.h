// The transport "shared": the processes of one machine meet in a mapping that all of them have.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/communicator.h"

namespace mpc::distributed {

/// The bytes of one slot by default. Every rank has three.
inline constexpr std::size_t kDefaultSlotBytes = std::size_t{512} << 10;

struct SharedGroup {
  /// The same in all processes of the group, and of no other group that lives: what brings the processes together draws
  /// it. A file name without a folder; a slash before it is allowed.
  std::string name;
  int rank = 0;
  int size = 1;
  /// How long a function waits for a rank that does not come. 60 s.
  std::chrono::milliseconds timeout{60000};
  /// The bytes that travel at a time: a multiple of 64, and at least 64 a rank. The same in all processes.
  std::size_t slot_bytes = kDefaultSlotBytes;
};

/// Joins the group, and waits until all of its ranks have. Every process calls this once, with its rank.
///
/// Rank 0 creates a POSIX shared memory object that only its user may open. It removes the object's name when all ranks
/// have mapped it, so that a run that is killed later leaves nothing. The mapping has 3 * size * slot_bytes, which are
/// reserved at once.
///
/// A function that waits sees within about a second that a rank was killed. Ranks in another namespace of process ids,
/// as those of another container, are waited for until the time limit. Waiting spins for some microseconds and then
/// sleeps. Calls in which ranks differ are INVALID_ARGUMENT in all ranks, and name both calls. A rank that has left, or
/// has failed, is UNAVAILABLE for the others.
///
/// Errors: options out of range (INVALID_ARGUMENT); an object of the same name that rank 0 has not created
/// (ALREADY_EXISTS in rank 0); an object of another user, another version, another group size or other slots; a rank
/// that two processes have (ALREADY_EXISTS); too little shared memory (RESOURCE_EXHAUSTED); a rank that has not come
/// within the time limit (DEADLINE_EXCEEDED) or has died (UNAVAILABLE).
absl::StatusOr<std::unique_ptr<Communicator>> CreateSharedCommunicator(const SharedGroup& group);

}  // namespace mpc::distributed
