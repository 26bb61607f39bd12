#include "runtime/distributed/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/version.h"

namespace mpc::runtime {
namespace {

constexpr char kVerdictKey[] = "verdict";
constexpr char kRankPrefix[] = "rank/";
constexpr std::size_t kMostNameBytes = 200;
/// How long rank 0 keeps the store for others that are to read why the group has ended.
constexpr Milliseconds kLinger{2000};

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// Drawn by the kernel at each start of the machine.
std::string MachineName() {
  std::string id;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, id);
  return id;
}

std::uint64_t DrawNonce() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

RankInfo SelfOf(const JoinOptions& options) {
  RankInfo self;
  self.rank = options.environment.rank;
  self.size = options.environment.size;
  self.host = options.host.empty() ? HostName() : options.host;
  self.machine = MachineName();
  self.pid = ::getpid();
  self.nonce = DrawNonce();
  self.processors = options.processors;
  self.quota = options.quota;
  self.version = options.version.empty() ? MPC_VERSION : options.version;
  self.hashes = options.hashes;
  return self;
}

absl::Status CheckOptions(const JoinOptions& options) {
  const LaunchEnvironment& environment = options.environment;
  if (environment.size < 1 || environment.size > kMostRanks || environment.rank < 0 ||
      environment.rank >= environment.size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", environment.rank, " of ", environment.size, ": 1 to ",
                                                   kMostRanks, " ranks from 0 on are accepted"));
  }
  if (environment.port < 0 || environment.port > 65535 || (environment.port == 0 && environment.size > 1)) {
    return absl::InvalidArgumentError(absl::StrCat("port ", environment.port, " for ", environment.size,
                                                   " ranks: 1 to 65535 are accepted, and 0 for one rank"));
  }
  if (environment.rank == 0 && environment.local_size < environment.size && options.listen_address.empty() &&
      IsLoopback(environment.address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("MASTER_ADDR is \"", environment.address, "\", which is loopback on the machine of rank 0, and ",
                     environment.size - environment.local_size,
                     " ranks are on other machines: name an address that they reach, or ", "say listen_address"));
  }
  return absl::OkStatus();
}

absl::Status CheckName(const std::string& name) {
  if (!name.empty() && name.size() <= kMostNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a name of ", name.size(), " bytes for an exchange or a barrier: 1 to ", kMostNameBytes, " are accepted"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> ProcessGroup::Join(const JoinOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  std::unique_ptr<ProcessGroup> group(new ProcessGroup(options, SelfOf(options)));
  absl::Status status = group->StartServer();
  if (status.ok()) status = group->ConnectAndAgree();
  if (status.ok()) return group;
  group->LetOthersRead();
  group->Leave();
  return status;
}

ProcessGroup::ProcessGroup(const JoinOptions& options, RankInfo self)
    : options_(options), self_(std::move(self)), rank_(self_.rank) {}

ProcessGroup::~ProcessGroup() {
  if (left_ || server_ == nullptr || (failure().ok() && !has_reported_)) return;
  heartbeats_.reset();
  store_.reset();
  server_->WaitUntilUnused(std::min(options_.leave_limit, kLinger));
}

absl::Status ProcessGroup::StartServer() {
  if (rank_ != 0) return absl::OkStatus();
  StoreServerOptions server;
  server.listen_address = options_.listen_address.empty() ? options_.environment.address : options_.listen_address;
  server.port = options_.environment.port;
  absl::StatusOr<std::unique_ptr<StoreServer>> started = StoreServer::Start(server);
  if (!started.ok()) return started.status();
  server_ = *std::move(started);
  return absl::OkStatus();
}

absl::Status ProcessGroup::ConnectAndAgree() {
  const Deadline deadline(options_.time_limit);
  StoreOptions store;
  store.address =
      rank_ == 0 && !options_.listen_address.empty() ? options_.listen_address : options_.environment.address;
  store.port = server_ != nullptr ? server_->port() : options_.environment.port;
  store.connect_limit = options_.time_limit;
  absl::StatusOr<std::unique_ptr<Store>> connected = Store::Connect(store);
  if (!connected.ok()) return connected.status();
  store_ = *std::move(connected);
  if (absl::Status status = Introduce(); !status.ok()) return status;
  absl::StatusOr<Verdict> verdict = WaitForVerdict(deadline);
  if (!verdict.ok()) return verdict.status();
  if (!verdict->status.ok()) return verdict->status;
  if (static_cast<int>(verdict->ranks.size()) != self_.size) {
    return absl::InternalError(
        absl::StrCat("the rendezvous gave ", verdict->ranks.size(), " of ", self_.size, " ranks"));
  }
  ranks_ = std::move(verdict->ranks);
  return store_->SetWill(kLossKey, Encode(LossOfSelf("has ended without a goodbye")));
}

/// Tells the store of this rank. What is wrong becomes the verdict for all.
absl::Status ProcessGroup::Introduce() {
  const Verdict will{absl::UnavailableError(absl::StrCat(RankText(self_), " has ended while ranks were joining")), {}};
  if (absl::Status status = store_->SetWill(kVerdictKey, Encode(will)); !status.ok()) return status;
  const std::string key = absl::StrCat(kRankPrefix, rank_);
  const absl::StatusOr<std::string> bytes = store_->Claim(key, Encode(self_));
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<RankInfo> stands = DecodeRankInfo(*bytes, key);
  if (!stands.ok()) return stands.status();
  if (stands->nonce == self_.nonce) return absl::OkStatus();
  const absl::Status twice = absl::AlreadyExistsError(
      absl::StrCat("a rank comes twice: ", RankText(*stands), " and ", RankText(self_),
                   ": is MASTER_PORT also that of another job, or was a process started twice?"));
  if (absl::Status status = ClaimVerdict({twice, {}}); !status.ok()) return status;
  return twice;
}

/// A rendezvous has failed, and some rank may still be on its way: rank 0 gives it time to read why.
void ProcessGroup::LetOthersRead() {
  constexpr char kReadKey[] = "read";
  if (store_ == nullptr) return;
  if (rank_ != 0) return store_->Add(kReadKey, 1).status().IgnoreError();
  const Deadline deadline(std::min(options_.leave_limit, kLinger));
  for (; !deadline.Passed(); std::this_thread::sleep_for(Milliseconds(10))) {
    const absl::StatusOr<std::int64_t> have_read = store_->Add(kReadKey, 0);
    if (!have_read.ok() || *have_read >= self_.size - 1) return;
  }
}

absl::Status ProcessGroup::ClaimVerdict(const Verdict& verdict) {
  return store_->Claim(kVerdictKey, Encode(verdict)).status();
}

absl::StatusOr<Verdict> ProcessGroup::WaitForVerdict(const Deadline& deadline) {
  // Rank 0 introduces itself before it waits for others, but perhaps after them.
  const std::string first_key = absl::StrCat(kRankPrefix, 0);
  const absl::StatusOr<std::string> first_bytes = store_->Get(first_key, deadline.Left());
  if (!first_bytes.ok()) return first_bytes.status();
  const absl::StatusOr<RankInfo> first = DecodeRankInfo(*first_bytes, first_key);
  if (!first.ok()) return first.status();
  if (absl::Status differs = CompareRanks(*first, self_); !differs.ok()) {
    if (absl::Status status = ClaimVerdict({differs, {}}); !status.ok()) return status;
    return Verdict{differs, {}};
  }
  const absl::StatusOr<std::int64_t> joined = store_->Add("joined", 1);
  if (!joined.ok()) return joined.status();
  if (*joined == self_.size) {
    const absl::StatusOr<Verdict> verdict = Judge();
    if (!verdict.ok()) return verdict;
    if (absl::Status status = ClaimVerdict(*verdict); !status.ok()) return status;
  }
  absl::StatusOr<std::string> bytes = store_->Get(kVerdictKey, deadline.Left());
  if (absl::IsDeadlineExceeded(bytes.status())) {
    const absl::StatusOr<std::vector<int>> late = RanksWithout(kRankPrefix);
    if (!late.ok()) return late.status();
    const absl::Status status = Late(absl::StrCat("the rendezvous of ", self_.size, " ranks"), *late);
    bytes = store_->Claim(kVerdictKey, Encode(Verdict{status, {}}));
  }
  if (!bytes.ok()) return bytes.status();
  return DecodeVerdict(*bytes, kVerdictKey);
}

/// The last rank that comes has everyone's info.
absl::StatusOr<Verdict> ProcessGroup::Judge() {
  Verdict verdict;
  for (int rank = 0; rank < self_.size; ++rank) {
    const std::string key = absl::StrCat(kRankPrefix, rank);
    const absl::StatusOr<std::string> bytes = store_->Get(key, Milliseconds(0));
    if (!bytes.ok()) return bytes.status();
    absl::StatusOr<RankInfo> info = DecodeRankInfo(*bytes, key);
    if (!info.ok()) return info.status();
    verdict.ranks.push_back(*std::move(info));
  }
  FillLocalRanks(verdict.ranks);
  return verdict;
}

/// The ranks r of which the store has no value under `prefix` and r.
absl::StatusOr<std::vector<int>> ProcessGroup::RanksWithout(const std::string& prefix) {
  std::vector<int> without;
  for (int rank = 0; rank < self_.size; ++rank) {
    const absl::Status status = store_->Get(absl::StrCat(prefix, rank), Milliseconds(0)).status();
    if (absl::IsDeadlineExceeded(status)) {
      without.push_back(rank);
    } else if (!status.ok()) {
      return Explain(status);
    }
  }
  return without;
}

/// What to say of ranks that have not come: that they are lost, where the store knows.
absl::Status ProcessGroup::Late(const std::string& what, const std::vector<int>& late) {
  const absl::StatusOr<std::string> bytes = store_->Get(kLossKey, Milliseconds(0));
  if (bytes.ok()) {
    const absl::StatusOr<Loss> loss = DecodeLoss(*bytes, kLossKey);
    return loss.ok() ? LossStatus(*loss) : loss.status();
  }
  return absl::DeadlineExceededError(absl::StrCat(what, ": ", RanksText(late), late.size() == 1 ? " has" : " have",
                                                  " not come within ", SecondsText(options_.time_limit)));
}

Loss ProcessGroup::LossOfSelf(const std::string& why) const {
  return {rank_, RankText(self_), why, heartbeats_ != nullptr ? heartbeats_->place() : Place()};
}

/// What an error of the store means for the group.
absl::Status ProcessGroup::Explain(const absl::Status& status) const {
  if (absl::Status failed = failure(); !failed.ok()) return failed;
  if (!absl::IsUnavailable(status) || ranks_.empty()) return status;
  return absl::UnavailableError(
      absl::StrCat(RankText(ranks_[0]), " has ended or cannot be reached (", status.message(), ")"));
}

absl::StatusOr<std::vector<std::string>> ProcessGroup::ExchangeBytes(const std::string& key, std::string_view bytes) {
  if (absl::Status status = CheckName(key); !status.ok()) return status;
  const Deadline deadline(options_.time_limit);
  const std::string prefix = absl::StrCat("exchange/", key, "/", rounds_[key]++, "/");
  if (absl::Status status = store_->Set(absl::StrCat(prefix, rank_), bytes); !status.ok()) return Explain(status);
  std::vector<std::string> all;
  for (int rank = 0; rank < size(); ++rank) {
    absl::StatusOr<std::string> theirs = store_->Get(absl::StrCat(prefix, rank), deadline.Left());
    if (absl::IsDeadlineExceeded(theirs.status())) {
      const absl::StatusOr<std::vector<int>> late = RanksWithout(prefix);
      if (!late.ok()) return late.status();
      return Late(absl::StrCat("the exchange of \"", key, "\""), *late);
    }
    if (!theirs.ok()) return Explain(theirs.status());
    all.push_back(*std::move(theirs));
  }
  const std::string read_key = absl::StrCat(prefix, "read");
  const absl::StatusOr<std::int64_t> have_read = store_->Add(read_key, 1);
  if (!have_read.ok()) return Explain(have_read.status());
  if (*have_read < size()) return all;
  for (int rank = 0; rank <= size(); ++rank) {
    const std::string old = rank < size() ? absl::StrCat(prefix, rank) : read_key;
    if (absl::Status status = store_->Remove(old).status(); !status.ok()) return Explain(status);
  }
  return all;
}

absl::Status ProcessGroup::CompareHashes(const std::string& key, const NamedHashes& hashes) {
  const absl::StatusOr<std::vector<std::string>> all = ExchangeBytes(key, Encode(hashes));
  if (!all.ok()) return all.status();
  std::vector<std::pair<int, NamedHashes>> of_ranks;
  for (int rank = 0; rank < size(); ++rank) {
    absl::StatusOr<NamedHashes> theirs = DecodeHashes((*all)[static_cast<std::size_t>(rank)], key);
    if (!theirs.ok()) return theirs.status();
    of_ranks.emplace_back(rank, *std::move(theirs));
  }
  return runtime::CompareHashes(of_ranks);
}

absl::StatusOr<std::string> ProcessGroup::BytesOfFirst(const std::string& key, std::string_view bytes) {
  if (absl::Status status = CheckName(key); !status.ok()) return status;
  absl::StatusOr<std::string> stands = store_->Claim(absl::StrCat("first/", key), bytes);
  if (!stands.ok()) return Explain(stands.status());
  return stands;
}

absl::Status ProcessGroup::CompareWithFirst(const std::string& key, const NamedHashes& hashes) {
  RankInfo own = self_;
  own.hashes = hashes;
  const absl::StatusOr<std::string> bytes = BytesOfFirst(key, Encode(own));
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<RankInfo> first = DecodeRankInfo(*bytes, key);
  if (!first.ok()) return first.status();
  if (first->rank < rank_) return runtime::CompareHashes({{first->rank, first->hashes}, {rank_, hashes}});
  return runtime::CompareHashes({{rank_, hashes}, {first->rank, first->hashes}});
}

absl::Status ProcessGroup::Barrier(const std::string& name) {
  if (absl::Status status = CheckName(name); !status.ok()) return status;
  const std::string prefix = absl::StrCat("come/", name, "/");
  const absl::StatusOr<std::int64_t> count = store_->Add(absl::StrCat(prefix, rank_), 1);
  if (!count.ok()) return Explain(count.status());
  const absl::Status status = store_->Barrier(name, size(), options_.time_limit);
  if (!absl::IsDeadlineExceeded(status)) return status.ok() ? status : Explain(status);
  std::vector<int> late;
  for (int rank = 0; rank < size(); ++rank) {
    const absl::StatusOr<std::int64_t> come = store_->Add(absl::StrCat(prefix, rank), 0);
    if (!come.ok()) return Explain(come.status());
    if (*come < *count) late.push_back(rank);
  }
  return Late(absl::StrCat("the barrier \"", name, "\""), late);
}

absl::Status ProcessGroup::Watch(const WatchOptions& options, Heartbeats::Callback on_failure) {
  if (heartbeats_ != nullptr) return absl::FailedPreconditionError("the heartbeats of this rank have started already");
  if (options.interval < Milliseconds(1) || options.limit < 2 * options.interval) {
    return absl::InvalidArgumentError(absl::StrCat("heartbeats every ", SecondsText(options.interval),
                                                   " with a limit of ", SecondsText(options.limit),
                                                   ": an interval from 0.001 s and a limit of two are accepted"));
  }
  StoreOptions of_heartbeats = store_->options();
  of_heartbeats.answer_limit = options.limit;
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Connect(of_heartbeats);
  if (!store.ok()) return Explain(store.status());
  absl::StatusOr<std::unique_ptr<Heartbeats>> heartbeats =
      Heartbeats::Start(*std::move(store), ranks_, rank_, options,
                        [raw = store_.get(), on_failure = std::move(on_failure)](const absl::Status& failure) {
                          raw->Interrupt();
                          if (on_failure) on_failure(failure);
                        });
  if (!heartbeats.ok()) return Explain(heartbeats.status());
  heartbeats_ = *std::move(heartbeats);
  // From now on the heartbeats leave the will, which knows the place.
  const absl::Status status = store_->SetWill(kLossKey, "");
  return status.ok() ? status : Explain(status);
}

void ProcessGroup::SetPlace(std::int64_t step, std::string_view what) {
  if (heartbeats_ != nullptr) heartbeats_->SetPlace(step, what);
}

void ProcessGroup::SetActivity(std::string_view what) {
  if (heartbeats_ != nullptr) heartbeats_->SetActivity(what);
}

std::string ProcessGroup::PlaceOf(int rank) {
  const absl::StatusOr<std::string> bytes = store_->Get(PlaceKey(rank), Milliseconds(0));
  if (!bytes.ok()) return "";
  const absl::StatusOr<Place> place = DecodePlace(*bytes, PlaceKey(rank));
  return place.ok() ? absl::StrCat("rank ", rank, " ", PlaceText(*place)) : "";
}

absl::Status ProcessGroup::failure() const {
  return heartbeats_ != nullptr ? heartbeats_->failure() : absl::OkStatus();
}

absl::Status ProcessGroup::ReportFailure(const std::string& why) {
  has_reported_ = true;
  const absl::Status status = store_->Claim(kLossKey, Encode(LossOfSelf(absl::StrCat("has failed: ", why)))).status();
  // The heartbeats have heard of a loss, perhaps of this one.
  if (status.ok() || absl::IsCancelled(status)) return absl::OkStatus();
  return Explain(status);
}

void ProcessGroup::Leave() {
  if (left_) return;
  left_ = true;
  const bool in_order = failure().ok() && !ranks_.empty();
  if (heartbeats_ != nullptr) heartbeats_->Leave();
  if (store_ != nullptr) {
    // A rank without a Place is not waited for. Where that fails, the store is gone.
    if (in_order) store_->Remove(PlaceKey(rank_)).IgnoreError();
    store_->Goodbye();
  }
  if (server_ == nullptr) return;
  server_->WaitUntilUnused(in_order ? options_.leave_limit : std::min(options_.leave_limit, kLinger));
  server_.reset();
}

}  // namespace mpc::runtime
