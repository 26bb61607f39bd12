// The transport "shared": the processes of one machine meet in a mapping that all of them have.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/communicator.h"
#include "runtime/distributed/wait_hook.h"

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
  WaitHook on_wait;  ///< asked by functions that wait, and while the group joins
  /// Ranks take turns on processors, so that who waits gives its own up sooner. Left out: there are more ranks than
  /// processors that this process may run on. Where ranks are bound to processors of their own that is wrong.
  std::optional<bool> share_processors;
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
/// Errors of joining:
///  * INVALID_ARGUMENT: a name, a rank, a size or slots out of range.
///  * ALREADY_EXISTS: rank 0 finds an object of this name, or another process has this rank.
///  * PERMISSION_DENIED, FAILED_PRECONDITION: the object belongs to another user, or other users may open it. Its form,
///    version, group size or slots are others.
///  * RESOURCE_EXHAUSTED: the machine has too little shared memory.
///  * DEADLINE_EXCEEDED, UNAVAILABLE: a rank has not come within the time limit, or has died.
absl::StatusOr<std::unique_ptr<Communicator>> CreateSharedCommunicator(const SharedGroup& group);

}  // namespace mpc::distributed
