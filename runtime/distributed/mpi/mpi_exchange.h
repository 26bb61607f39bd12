// Bytes between two processes by MPI, within a time limit.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/distributed/tree_reduction.h"
#include "runtime/distributed/wait_hook.h"

namespace mpc::distributed {

/// A duplicate of MPI_COMM_WORLD, so that its messages meet no others. MPI's calls that could wait for ever are not
/// made: requests are tested until they are complete or the time is over. Between tests the thread yields.
///
/// A process also says when it leaves the group and when it has failed. Whoever waits for it looks for that every
/// millisecond.
class MpiExchange final : public PeerExchange {
 public:
  /// Every process calls this. MPI has started. Errors: those of OpenMpiCommunicator about the group.
  static absl::StatusOr<std::unique_ptr<MpiExchange>> Open(std::chrono::milliseconds timeout,
                                                           WaitHook on_wait = nullptr);

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  /// Names the function whose messages follow, for errors.
  void set_function(const char* function) { function_ = function; }

  /// Errors: DEADLINE_EXCEEDED where the peer has not come in time. UNAVAILABLE where it has left, where any process
  /// has failed, or for an error of MPI. INVALID_ARGUMENT where it sent another number of bytes. FAILED_PRECONDITION in
  /// another thread than that of Open, unless MPI allows it.
  absl::Status Exchange(int peer, absl::Span<const std::byte> send, absl::Span<std::byte> receive) override;

  /// Reduces `count` elements in all processes by MPI's own all-reduce, within the time limit for each 64 MiB. `input`
  /// and `output` are equal, or do not overlap. Errors are those of Exchange. But a process that has left, or calls
  /// something else, is noticed at the time limit only. One that has its result may leave while others wait.
  absl::Status AllReduce(const void* input, void* output, std::size_t count, MPI_Datatype element, MPI_Op operation);

  std::chrono::milliseconds time_limit() const { return timeout_; }

  /// Looks, without waiting, whether a process has failed or left. Errors: UNAVAILABLE, and those of another thread.
  absl::Status LookForLoss() const;

  /// Tells all processes that this one leaves, and waits until all do. It is the last call.
  absl::Status Leave();

  /// Tells all processes that this one has failed, and waits for nobody.
  void Fail();

 private:
  using Clock = std::chrono::steady_clock;

  MpiExchange(std::chrono::milliseconds timeout, WaitHook on_wait) : timeout_(timeout), on_wait_(std::move(on_wait)) {}

  absl::Status Duplicate();
  absl::Status CheckThread() const;
  absl::Status ExchangeMessage(int peer, absl::Span<const std::byte> send, absl::Span<std::byte> receive);
  /// Waits for a message of the size of `receive`, and begins to receive it.
  absl::Status StartReceive(int peer, absl::Span<std::byte> receive, Clock::time_point start, MPI_Request* request);
  /// Calls `test(&done)`, which returns a code of MPI, until it is done or there is a reason to wait no longer. The
  /// time limit begins at `start`. `peer` may be MPI_ANY_SOURCE.
  template <typename Test>
  absl::Status Until(int peer, Clock::time_point start, const Test& test);
  /// Waits until all `requests` are complete.
  absl::Status Wait(int peer, absl::Span<MPI_Request> requests, Clock::time_point start);
  /// Whether there is a reason to wait for `peer` no longer.
  absl::Status Look(int peer, Clock::duration waited) const;
  /// Whether a process has said that it failed.
  absl::Status LookForFailure(int peer) const;
  absl::Status Failure(int peer, int code) const;
  std::string Who(int peer) const;

  const std::chrono::milliseconds timeout_;
  const WaitHook on_wait_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool any_thread_ = false;
  const std::thread::id thread_ = std::this_thread::get_id();
  const char* function_ = "opening the group";
};

}  // namespace mpc::distributed
