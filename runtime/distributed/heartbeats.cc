#include "runtime/distributed/heartbeats.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::runtime {
namespace {

constexpr std::size_t kMostWhatBytes = 160;

}  // namespace

std::string PlaceKey(int rank) { return absl::StrCat("place/", rank); }

absl::StatusOr<std::unique_ptr<Heartbeats>> Heartbeats::Start(std::unique_ptr<Store> store, std::vector<RankInfo> ranks,
                                                              int rank, const WatchOptions& options,
                                                              Callback on_failure) {
  std::unique_ptr<Heartbeats> heartbeats(
      new Heartbeats(std::move(store), std::move(ranks), rank, options, std::move(on_failure)));
  if (absl::Status status = heartbeats->Beat(); !status.ok()) return status;
  heartbeats->thread_ = std::thread([raw = heartbeats.get()] { raw->Run(); });
  return heartbeats;
}

Heartbeats::Heartbeats(std::unique_ptr<Store> store, std::vector<RankInfo> ranks, int rank, const WatchOptions& options,
                       Callback on_failure)
    : store_(std::move(store)),
      ranks_(std::move(ranks)),
      rank_(rank),
      options_(options),
      on_failure_(std::move(on_failure)),
      looked_(std::chrono::steady_clock::now()) {}

Heartbeats::~Heartbeats() { Stop(); }

void Heartbeats::Stop() {
  stops_ = true;
  store_->Interrupt();
  if (thread_.joinable()) thread_.join();
}

void Heartbeats::Leave() {
  Stop();
  store_->Goodbye();
}

void Heartbeats::SetPlace(std::int64_t step, std::string_view what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  place_.step = step;
  place_.what.assign(what.substr(0, kMostWhatBytes));
}

void Heartbeats::SetActivity(std::string_view what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  place_.what.assign(what.substr(0, kMostWhatBytes));
}

absl::Status Heartbeats::failure() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

Place Heartbeats::place() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return place_;
}

Place Heartbeats::NextPlace() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard<std::mutex> lock(mutex_);
  ++place_.beat;
  place_.unix_milliseconds = std::chrono::duration_cast<Milliseconds>(now).count();
  return place_;
}

Loss Heartbeats::LossOf(int rank, const std::string& why, Place place) const {
  return {rank, RankText(ranks_[static_cast<std::size_t>(rank)]), why, std::move(place)};
}

absl::Status Heartbeats::Beat() {
  const Place place = NextPlace();
  const Loss will = LossOf(rank_, "has ended without a goodbye", place);
  if (absl::Status status = store_->SetWill(kLossKey, Encode(will)); !status.ok()) return status;
  return store_->Set(PlaceKey(rank_), Encode(place));
}

absl::Status Heartbeats::LookAtOthers() {
  const auto now = std::chrono::steady_clock::now();
  // Where this process stood still, so did the store: the others could not tell.
  const auto since = std::min(std::chrono::duration_cast<Milliseconds>(now - looked_), 2 * options_.interval);
  looked_ = now;
  for (const RankInfo& info : ranks_) {
    if (info.rank == rank_) continue;
    if (absl::Status status = LookAt(info.rank, since); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Heartbeats::LookAt(int rank, Milliseconds since) {
  const absl::StatusOr<std::string> bytes = store_->Get(PlaceKey(rank), Milliseconds(0));
  if (absl::IsDeadlineExceeded(bytes.status())) {
    seen_.erase(rank);  // it has not begun, or has said goodbye
    return absl::OkStatus();
  }
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<Place> place = DecodePlace(*bytes, PlaceKey(rank));
  if (!place.ok()) return place.status();
  Seen& seen = seen_[rank];
  if (place->beat != seen.beat) {
    seen = {place->beat, *std::move(place), Milliseconds(0)};
    return absl::OkStatus();
  }
  seen.silent += since;
  if (seen.silent <= options_.limit) return absl::OkStatus();
  const std::string why = absl::StrCat("has been silent for ", SecondsText(seen.silent));
  return store_->Claim(kLossKey, Encode(LossOf(rank, why, seen.place))).status();
}

absl::Status Heartbeats::LookAtRank0() {
  const absl::StatusOr<std::string> bytes = store_->Get(PlaceKey(0), Milliseconds(0));
  const bool absent = absl::IsDeadlineExceeded(bytes.status());
  rank_0_has_left_ = absent && place_of_rank_0_.has_value();
  if (absent) return absl::OkStatus();
  if (!bytes.ok()) return bytes.status();
  place_of_rank_0_ = DecodePlace(*bytes, PlaceKey(0)).value_or(Place());
  return absl::OkStatus();
}

/// nullopt: there is no loss within an interval. The error is the store's.
absl::StatusOr<std::optional<Loss>> Heartbeats::HearOfLoss() {
  const absl::StatusOr<std::string> bytes = store_->Get(kLossKey, options_.interval);
  if (absl::IsDeadlineExceeded(bytes.status())) return std::nullopt;
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<Loss> loss = DecodeLoss(*bytes, kLossKey);
  if (!loss.ok()) return loss.status();
  return *std::move(loss);
}

void Heartbeats::Run() {
  while (!stops_) {
    absl::Status store = Beat();
    if (store.ok()) store = rank_ == 0 ? LookAtOthers() : LookAtRank0();
    if (store.ok()) {
      const absl::StatusOr<std::optional<Loss>> loss = HearOfLoss();
      store = loss.status();
      if (loss.ok() && loss->has_value()) return Fail(LossStatus(**loss));
    }
    if (stops_) return;
    if (!store.ok()) {
      if (rank_0_has_left_) return;
      const std::string why = absl::StrCat("has ended or cannot be reached (", store.message(), ")");
      return Fail(LossStatus(LossOf(0, why, place_of_rank_0_.value_or(Place()))));
    }
  }
}

void Heartbeats::Fail(const absl::Status& failure) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_ = failure;
  }
  if (on_failure_) on_failure_(failure);
}

}  // namespace mpc::runtime
