// The thread of a rank that tells the store where the rank is, and hears which other rank is lost.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/distributed/rank_info.h"
#include "runtime/distributed/store.h"

namespace mpc::runtime {

struct WatchOptions {
  Milliseconds interval{1000};  ///< between two heartbeats
  Milliseconds limit{30000};    ///< a rank that is silent for longer is lost; at least two intervals
};

/// The key that has the group's Loss, once there is one.
inline constexpr char kLossKey[] = "loss";
/// The key that has a rank's Place.
std::string PlaceKey(int rank);

/// Every interval it writes the rank's Place, and leaves a Loss as its will: a process that ends without a goodbye is
/// lost. Rank 0 also looks at everybody's Place, and writes a Loss for a rank that was silent for the limit. The time
/// in which rank 0 itself stood still does not count. All wait for a Loss, so they hear of it at once. A store that is
/// gone or silent for the limit means that rank 0 is lost. But rank 0 removes its Place when it leaves, and is not lost
/// then.
class Heartbeats {
 public:
  /// Called once, on the thread of the heartbeats. It may not destroy them.
  using Callback = std::function<void(const absl::Status&)>;

  /// Writes the first heartbeat and starts the thread. `store` is for this alone, and its answer_limit is
  /// `options.limit`. `ranks` are those of the group in order, and `rank` is this process's. Errors as of Store.
  static absl::StatusOr<std::unique_ptr<Heartbeats>> Start(std::unique_ptr<Store> store, std::vector<RankInfo> ranks,
                                                           int rank, const WatchOptions& options, Callback on_failure);
  /// Ends the thread. Without Leave the others take this rank for lost.
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  /// Says where this rank is. Copies at most 160 bytes of `what` and waits for nothing; any thread may call it.
  void SetPlace(std::int64_t step, std::string_view what);
  /// Says what this rank does in the same step, as SetPlace.
  void SetActivity(std::string_view what);
  /// OK, or the loss of a rank (UNAVAILABLE), which stays. Any thread may call it.
  absl::Status failure() const;
  /// Where this rank is. Any thread may call it.
  Place place() const;
  /// Ends the thread and says goodbye.
  void Leave();

 private:
  /// What rank 0 knows of another rank.
  struct Seen {
    std::int64_t beat = -1;  ///< -1: it has not begun
    Place place;
    Milliseconds silent{0};
  };

  Heartbeats(std::unique_ptr<Store> store, std::vector<RankInfo> ranks, int rank, const WatchOptions& options,
             Callback on_failure);
  Place NextPlace();
  Loss LossOf(int rank, const std::string& why, Place place) const;
  absl::Status Beat();
  absl::Status LookAtOthers();
  absl::Status LookAt(int rank, Milliseconds since);
  absl::Status LookAtRank0();
  absl::StatusOr<std::optional<Loss>> HearOfLoss();
  void Run();
  void Fail(const absl::Status& failure);
  void Stop();

  const std::unique_ptr<Store> store_;
  const std::vector<RankInfo> ranks_;
  const int rank_;
  const WatchOptions options_;
  const Callback on_failure_;
  std::atomic<bool> stops_{false};
  std::map<int, Seen> seen_;              ///< only the thread uses it
  std::optional<Place> place_of_rank_0_;  ///< as above; none before it has told one
  bool rank_0_has_left_ = false;          ///< as above
  std::chrono::steady_clock::time_point looked_;
  mutable std::mutex mutex_;
  Place place_;           ///< guarded by mutex_
  absl::Status failure_;  ///< as above
  std::thread thread_;
};

}  // namespace mpc::runtime
