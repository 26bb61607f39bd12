// How the ranks of a "shared" group wait for each other, and what they learn when one does not come.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/distributed/collective_call.h"
#include "runtime/distributed/process_identity.h"
#include "runtime/distributed/shared_communicator.h"
#include "runtime/distributed/shared_mapping.h"

namespace mpc::distributed {

/// One rank's place in a mapping. Its destructor tells the others that the rank has left.
class SharedMeeting {
 public:
  /// Takes the rank of `group` in `mapping`, and waits for all others. Errors as CreateSharedCommunicator.
  static absl::StatusOr<std::unique_ptr<SharedMeeting>> Join(std::unique_ptr<SharedMapping> mapping,
                                                             const SharedGroup& group);
  ~SharedMeeting();
  SharedMeeting(const SharedMeeting&) = delete;
  SharedMeeting& operator=(const SharedMeeting&) = delete;

  const SharedMapping& mapping() const { return *mapping_; }

  /// Says what this rank calls. The next meeting compares it with what the others call.
  void Begin(const CollectiveCall& call);

  /// Returns when every rank has come to this meeting. What each rank wrote to the mapping before it can be read.
  /// Errors as Communicator.
  absl::Status Meet();

  /// The number of the last meeting, from 1. What is written for the next one goes to the slot of its number.
  std::uint64_t number() const { return number_; }

  /// Looks, without waiting, whether a rank has died, left or failed. Error: UNAVAILABLE, with its rank.
  absl::Status LookForLoss() const;

  std::chrono::milliseconds time_limit() const { return timeout_; }

  /// Keeps `error` for the others, who then do not wait for this rank. Returns it.
  absl::Status Fail(absl::Status error);

 private:
  using Clock = std::chrono::steady_clock;

  SharedMeeting(std::unique_ptr<SharedMapping> mapping, const SharedGroup& group);

  RankRecord& own() const { return mapping_->record(rank_); }
  bool HasArrived(int rank) const;
  /// Waits without sleeping, for a bounded time.
  bool SpinFor(int rank) const;
  absl::Status SleepFor(int rank, std::optional<Clock::time_point>& end);
  void WakeWaiters() const;

  absl::Status TakeRank();
  absl::Status WaitForAll();
  absl::Status WaitForRankZero();
  absl::Status CompareCalls() const;
  /// An error where a rank that has not arrived never will.
  absl::Status CheckMissing() const;
  absl::Status CheckMissingRank(int rank) const;
  absl::Status Late() const;
  bool Died(int rank) const;
  /// Why `rank` comes no more: " has died". Empty where it may come.
  std::string LossOf(int rank) const;
  /// Tells and asks the hook of the group.
  absl::Status Ask() const;
  /// "all-reduce, its call 7".
  std::string Waiting() const;
  /// ": rank 0 waited for it in all-reduce, its call 7".
  std::string Where() const;

  std::unique_ptr<SharedMapping> mapping_;
  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  std::string name_;
  WaitHook on_wait_;
  ProcessIdentity self_;
  int spins_;
  std::uint64_t number_ = 0;
  std::uint64_t call_ = 0;
  bool compared_ = true;
  bool took_rank_ = false;
};

}  // namespace mpc::distributed
