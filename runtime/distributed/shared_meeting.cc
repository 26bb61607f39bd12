#include "runtime/distributed/shared_meeting.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::distributed {
namespace {

// A rank that sleeps looks this often whether the others still run.
constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::milliseconds kPoll{1};
// Pauses before a rank lets others have the core: about 50 microseconds. Where ranks share cores, spinning keeps the
// rank that is waited for from running.
constexpr int kSpins = 1000;
constexpr int kSpinsWithSharedCores = 20;
constexpr int kYields = 20;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// Sleeps while `word` is `seen`, for at most `most`.
void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds most) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(most.count() / 1000000000);
  time.tv_nsec = static_cast<long>(most.count() % 1000000000);
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void FutexWakeAll(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

int Spins(const SharedGroup& group) {
  const bool more_ranks = group.size > static_cast<int>(std::thread::hardware_concurrency());
  return group.share_processors.value_or(more_ranks) ? kSpinsWithSharedCores : kSpins;
}

}  // namespace

SharedMeeting::SharedMeeting(std::unique_ptr<SharedMapping> mapping, const SharedGroup& group)
    : mapping_(std::move(mapping)),
      rank_(group.rank),
      size_(group.size),
      timeout_(group.timeout),
      name_(group.name),
      on_wait_(group.on_wait),
      self_(ThisProcess()),
      spins_(Spins(group)) {}

SharedMeeting::~SharedMeeting() {
  // A child of fork has a copy of this object, and is not the rank.
  if (!took_rank_ || ::getpid() != self_.pid || own().state.load() != RankState::kPresent) return;
  own().state.store(RankState::kLeft);
  WakeWaiters();
}

absl::StatusOr<std::unique_ptr<SharedMeeting>> SharedMeeting::Join(std::unique_ptr<SharedMapping> mapping,
                                                                   const SharedGroup& group) {
  auto meeting = std::unique_ptr<SharedMeeting>(new SharedMeeting(std::move(mapping), group));
  if (absl::Status status = meeting->TakeRank(); !status.ok()) return status;
  absl::Status joined = group.rank == 0 ? meeting->WaitForAll() : meeting->WaitForRankZero();
  if (!joined.ok()) return meeting->Fail(joined);
  return meeting;
}

absl::Status SharedMeeting::TakeRank() {
  RankState absent = RankState::kAbsent;
  if (!own().state.compare_exchange_strong(absent, RankState::kJoining)) {
    return absl::AlreadyExistsError(
        absl::StrCat("rank ", rank_, " of the shared mapping '", name_, "' is taken by another process"));
  }
  took_rank_ = true;
  own().process = self_;
  own().state.store(RankState::kPresent);
  return absl::OkStatus();
}

absl::Status SharedMeeting::WaitForAll() {
  const Clock::time_point end = Clock::now() + timeout_;
  absl::Status status;
  const auto absent = [this](int rank) { return mapping_->record(rank).state.load() < RankState::kPresent; };
  Clock::time_point look = Clock::now() + kLook;
  for (int rank = 1; rank < size_ && status.ok();) {
    if (!absent(rank)) {
      ++rank;
      continue;
    }
    if (Clock::now() >= end) {
      std::string missing;
      for (int other = rank; other < size_; ++other) {
        if (absent(other)) absl::StrAppend(&missing, missing.empty() ? "" : ", ", other);
      }
      status = absl::DeadlineExceededError(absl::StrCat("rank 0 has waited ", timeout_.count(),
                                                        " ms for ranks to join '", name_, "': missing: ", missing));
    } else if (Clock::now() >= look) {
      status = Ask();
      if (status.ok()) status = CheckMissing();
      look = Clock::now() + kLook;
    }
    std::this_thread::sleep_for(kPoll);
  }
  mapping_->RemoveName();
  if (status.ok()) mapping_->header().complete.store(1);
  return status;
}

absl::Status SharedMeeting::WaitForRankZero() {
  const Clock::time_point end = Clock::now() + timeout_ + kLook;  // rank 0 knows better who is missing
  Clock::time_point look = Clock::now() + kLook;
  while (mapping_->header().complete.load() == 0) {
    if (Clock::now() >= look) {
      // Rank 0 alone removes the name; where it has died, another does.
      if (Died(0)) mapping_->RemoveName();
      absl::Status status = Ask();
      if (status.ok()) status = CheckMissing();
      // A rank may have joined, trained and left since.
      if (!status.ok() && mapping_->header().complete.load() == 0) return status;
      look = Clock::now() + kLook;
    }
    if (Clock::now() >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("rank ", rank_, " has waited ", timeout_.count(), " ms for all ranks to join '", name_, "'"));
    }
    std::this_thread::sleep_for(kPoll);
  }
  return absl::OkStatus();
}

void SharedMeeting::Begin(const CollectiveCall& call) {
  ++call_;
  own().calls[call_ % 2] = call;
  own().function.store(call.function, std::memory_order_relaxed);
  own().call.store(call_, std::memory_order_relaxed);
  compared_ = false;
}

absl::Status SharedMeeting::Meet() {
  ++number_;
  own().arrived.store(static_cast<std::uint32_t>(number_));
  WakeWaiters();
  std::optional<Clock::time_point> end;
  for (int step = 1; step < size_; ++step) {
    const int other = (rank_ + step) % size_;
    if (HasArrived(other) || SpinFor(other)) continue;
    if (absl::Status status = SleepFor(other, end); !status.ok()) return status;
  }
  if (compared_) return absl::OkStatus();
  compared_ = true;
  return CompareCalls();
}

absl::Status SharedMeeting::Fail(absl::Status error) {
  if (own().state.load() != RankState::kPresent) return error;
  const std::string_view text(error.message().data(), error.message().size());
  const std::size_t kept = std::min(text.size(), own().error.size() - 1);
  std::memcpy(own().error.data(), text.data(), kept);
  own().error[kept] = '\0';
  own().state.store(RankState::kFailed);
  WakeWaiters();
  return error;
}

bool SharedMeeting::HasArrived(int rank) const {
  // Meetings are counted in a circle, and ranks are at most one apart.
  const std::uint32_t ahead = mapping_->record(rank).arrived.load() - static_cast<std::uint32_t>(number_);
  return static_cast<std::int32_t>(ahead) >= 0;
}

bool SharedMeeting::SpinFor(int rank) const {
  for (int i = 0; i < spins_; ++i) {
    Pause();
    if (HasArrived(rank)) return true;
  }
  for (int i = 0; i < kYields; ++i) {
    ::sched_yield();
    if (HasArrived(rank)) return true;
  }
  return false;
}

absl::Status SharedMeeting::SleepFor(int rank, std::optional<Clock::time_point>& end) {
  RankRecord& record = mapping_->record(rank);
  if (!end.has_value()) end = Clock::now() + timeout_;
  // The other rank reads `waiters` after it writes `arrived`; this one writes and reads in the opposite order. So one
  // of both sees the other.
  record.waiters.fetch_add(1);
  absl::Status status;
  while (status.ok()) {
    const std::uint32_t seen = record.arrived.load();
    if (HasArrived(rank)) break;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*end - Clock::now());
    if (left.count() > 0) FutexWait(record.arrived, seen, std::min<std::chrono::nanoseconds>(left, kLook));
    if (HasArrived(rank)) break;
    status = Ask();
    if (status.ok()) status = CheckMissing();
    if (status.ok() && Clock::now() >= *end) status = Late();
  }
  record.waiters.fetch_sub(1);
  return status;
}

void SharedMeeting::WakeWaiters() const {
  if (own().waiters.load() != 0) FutexWakeAll(own().arrived);
}

absl::Status SharedMeeting::CompareCalls() const {
  const CollectiveCall& first = mapping_->record(0).calls[call_ % 2];
  for (int rank = 1; rank < size_; ++rank) {
    const CollectiveCall& other = mapping_->record(rank).calls[call_ % 2];
    if (other.hash == first.hash) continue;
    return absl::InvalidArgumentError(absl::StrCat("ranks differ in their call ", call_, ": rank 0 calls ",
                                                   CallText(first), ", and rank ", rank, " calls ", CallText(other)));
  }
  return absl::OkStatus();
}

bool SharedMeeting::Died(int rank) const {
  const RankRecord& record = mapping_->record(rank);
  if (record.state.load() != RankState::kPresent || MayRun(record.process, self_)) return false;
  return record.state.load() == RankState::kPresent;  // it may have left before it ended
}

std::string SharedMeeting::LossOf(int rank) const {
  const RankRecord& record = mapping_->record(rank);
  if (Died(rank)) return " has died";
  if (record.state.load() == RankState::kLeft) return " has left the group";
  if (record.state.load() == RankState::kFailed) return absl::StrCat(" has failed (", record.error.data(), ")");
  return "";
}

absl::Status SharedMeeting::LookForLoss() const {
  for (int rank = 0; rank < size_; ++rank) {
    const std::string cause = rank == rank_ ? "" : LossOf(rank);
    if (!cause.empty()) return absl::UnavailableError(absl::StrCat("rank ", rank, cause));
  }
  return on_wait_ ? on_wait_(kWaitOfDevice) : absl::OkStatus();
}

absl::Status SharedMeeting::CheckMissingRank(int rank) const {
  const std::string cause = LossOf(rank);
  // It may have come before it went.
  if (cause.empty() || (number_ > 0 && HasArrived(rank))) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("rank ", rank, cause, Where()));
}

absl::Status SharedMeeting::CheckMissing() const {
  // A rank fails when another dies: the one that died is named.
  for (const bool failed : {false, true}) {
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_ || (number_ > 0 && HasArrived(rank))) continue;
      if ((mapping_->record(rank).state.load() == RankState::kFailed) != failed) continue;
      if (absl::Status status = CheckMissingRank(rank); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status SharedMeeting::Late() const {
  std::string missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || HasArrived(rank)) continue;
    const RankRecord& record = mapping_->record(rank);
    absl::StrAppend(&missing, missing.empty() ? "rank " : ", rank ", rank, " (last in ",
                    CollectiveName(record.function.load()), ", its call ", record.call.load(), ")");
  }
  return absl::DeadlineExceededError(absl::StrCat("rank ", rank_, " has waited ", timeout_.count(), " ms in ",
                                                  CollectiveName(own().function.load()), ", its call ", call_, ", for ",
                                                  missing));
}

absl::Status SharedMeeting::Ask() const {
  if (!on_wait_) return absl::OkStatus();
  return on_wait_(call_ == 0 ? kJoining : Waiting());
}

std::string SharedMeeting::Waiting() const {
  return absl::StrCat(CollectiveName(own().function.load()), ", its call ", call_);
}

std::string SharedMeeting::Where() const {
  if (call_ == 0) return absl::StrCat(": rank ", rank_, " waited for all ranks to join '", name_, "'");
  return absl::StrCat(": rank ", rank_, " waited for it in ", Waiting());
}

}  // namespace mpc::distributed
