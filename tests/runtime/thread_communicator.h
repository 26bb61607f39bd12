// A group of threads of one process that stands for a group of processes in tests.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/communicator.h"

namespace mpc::test {

/// What the threads of a group share. It lives as long as one of its communicators.
class ThreadGroup : public std::enable_shared_from_this<ThreadGroup> {
 public:
  explicit ThreadGroup(int size, std::chrono::milliseconds timeout = std::chrono::seconds(60))
      : timeout_(timeout), ranks_(static_cast<std::size_t>(size)) {}

  /// The communicator of one rank, for one thread at a time. Its end is the rank's end: others get UNAVAILABLE where
  /// they wait for it.
  std::unique_ptr<Communicator> Join(int rank);

 private:
  friend class ThreadCommunicator;

  struct Rank {
    std::string call;  ///< what it has called, with sizes and types
    const void* operands = nullptr;
    bool has_come = false;
    bool has_left = false;
  };

  /// Waits until all ranks have called it with the same `call`. Errors stay, for all ranks.
  absl::Status Meet(int rank, const std::string& call, const void* operands);
  absl::Status Judge() const;
  absl::Status LookForLoss(int rank);

  const std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;  ///< guarded by mutex_, as all below
  int arrived_ = 0;
  std::uint64_t meetings_ = 0;
  absl::Status outcome_;  ///< of the last meeting; the next one cannot end before all ranks have seen it
  absl::Status failed_;
};

/// Runs `body` with the communicator of each rank, on a thread of its own, and waits for all.
void OnRanks(int size, const std::function<void(Communicator& communicator)>& body,
             std::chrono::milliseconds timeout = std::chrono::seconds(60));

}  // namespace mpc::test
