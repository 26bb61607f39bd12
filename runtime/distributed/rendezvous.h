// How the processes of a job come together, agree, and hear of each other's end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/distributed/heartbeats.h"
#include "runtime/distributed/launch_environment.h"
#include "runtime/distributed/rank_info.h"
#include "runtime/distributed/store.h"
#include "runtime/distributed/store_server.h"

namespace mpc::runtime {

struct JoinOptions {
  LaunchEnvironment environment;
  std::string listen_address;       ///< where rank 0 listens; empty: the environment's address
  std::vector<int> processors;      ///< that this rank may run on; only told to the others
  int quota = 0;                    ///< as RankInfo::quota; only told to the others
  std::string version;              ///< empty: mpc's
  NamedHashes hashes;               ///< what must be equal on all ranks before anything starts
  Milliseconds time_limit{300000};  ///< for joining, and then for each exchange and barrier
  Milliseconds leave_limit{10000};  ///< how long rank 0 keeps the store for others; 2 s at most after an error
  std::string host;                 ///< empty: the system's name of this machine
};

/// The group of processes of a job: control, not data. It needs the store of rank 0, which lives as long as the group
/// object of rank 0. One thread calls a group at a time, save SetPlace, SetActivity and failure.
///
/// Errors of every call, beside its own: a rank is lost (UNAVAILABLE), or ranks have not come within the time limit
/// (DEADLINE_EXCEEDED). Both name the ranks, and the first one their place where Watch is on. Who has joined must call
/// Leave, or the others take it for lost.
class ProcessGroup {
 public:
  /// Joins and waits for all ranks. Rank 0 starts the store.
  ///
  /// Errors that reach all ranks that wait, and name those at fault.
  /// * INVALID_ARGUMENT: another size, version or hash on some rank.
  /// * ALREADY_EXISTS: a rank that comes twice.
  /// * UNAVAILABLE: a rank that ends meanwhile.
  /// * DEADLINE_EXCEEDED: ranks that do not come.
  ///
  /// Errors of one rank are those of StoreServer::Start and Store::Connect, and a rank not below its size. An address
  /// may not be loopback on rank 0 while ranks are on other machines (INVALID_ARGUMENT).
  static absl::StatusOr<std::unique_ptr<ProcessGroup>> Join(const JoinOptions& options);
  /// Closes the connections. Without Leave the others take this rank for lost.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  /// All ranks in order, with local ranks by machine.
  const std::vector<RankInfo>& ranks() const { return ranks_; }
  /// The same number on all ranks, and another one in another job: the nonce of rank 0.
  std::uint64_t job_nonce() const { return ranks_[0].nonce; }
  /// Where rank 0 listens.
  int port() const { return store_->options().port; }
  /// The store of rank 0; null on others.
  const StoreServer* server() const { return server_.get(); }

  /// Every rank's bytes, in the order of ranks. All call it with the same key, as often as they like. At most 16 MiB a
  /// rank; keys have at most 200 bytes.
  absl::StatusOr<std::vector<std::string>> ExchangeBytes(const std::string& key, std::string_view bytes);
  /// Error (INVALID_ARGUMENT, the same text on all ranks): some entry differs or is missing. It says which, and who has
  /// what. All call it with the same key.
  absl::Status CompareHashes(const std::string& key, const NamedHashes& hashes);
  /// The bytes of the rank that has called this first with `key`: it waits for nobody, and not every rank need call it.
  /// At most 16 MiB; keys have at most 200 bytes.
  absl::StatusOr<std::string> BytesOfFirst(const std::string& key, std::string_view bytes);
  /// Compares with the rank that has called this first with `key`, as CompareHashes compares all. It waits for nobody,
  /// so that a rank need not call it.
  absl::Status CompareWithFirst(const std::string& key, const NamedHashes& hashes);
  /// Returns when all ranks have called it with this name.
  absl::Status Barrier(const std::string& name);

  /// Starts heartbeats. From now on the loss of a rank ends calls that wait, shows in failure(), and is told to
  /// `on_failure`, on another thread. May be called once. A silent rank is noticed where it and rank 0 have called
  /// Watch.
  absl::Status Watch(const WatchOptions& options, Heartbeats::Callback on_failure = nullptr);
  /// Says where this rank is, for heartbeats. Cheap. Without Watch it does nothing.
  void SetPlace(std::int64_t step, std::string_view what);
  /// Says what this rank does in the same step, as SetPlace.
  void SetActivity(std::string_view what);
  /// Where `rank` was when it last told: "rank 1 was last at step 17, "train_step"". Empty where it has told nothing,
  /// and where the store does not say.
  std::string PlaceOf(int rank);
  /// OK, or what Watch has heard: UNAVAILABLE, with the rank and its place.
  absl::Status failure() const;
  /// Tells all ranks, this one too, that it ends for a reason, which they then name. Only a group's first loss counts.
  absl::Status ReportFailure(const std::string& why);

  /// Says goodbye. Rank 0 then waits until the others have closed their connections, for leave_limit at most. Nothing
  /// else may be called behind it.
  void Leave();

 private:
  ProcessGroup(const JoinOptions& options, RankInfo self);
  absl::Status StartServer();
  absl::Status ConnectAndAgree();
  absl::Status Introduce();
  void LetOthersRead();
  absl::Status ClaimVerdict(const Verdict& verdict);
  absl::StatusOr<Verdict> WaitForVerdict(const Deadline& deadline);
  absl::StatusOr<Verdict> Judge();
  absl::StatusOr<std::vector<int>> RanksWithout(const std::string& prefix);
  absl::Status Late(const std::string& what, const std::vector<int>& late);
  Loss LossOfSelf(const std::string& why) const;
  absl::Status Explain(const absl::Status& status) const;

  const JoinOptions options_;
  const RankInfo self_;
  const int rank_;
  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Heartbeats> heartbeats_;
  std::vector<RankInfo> ranks_;
  std::map<std::string, std::int64_t> rounds_;  ///< how often each key was exchanged
  bool left_ = false;
  bool has_reported_ = false;  ///< a failure, for which rank 0 lets others read before it ends
};

}  // namespace mpc::runtime
