#include "frontend/distributed/distributed.h"

#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/distributed/activity.h"
#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/distributed/join_group.h"
#include "runtime/distributed/any_order_communicator.h"

namespace mpc::distributed {
namespace {

/// Of how many other ranks an error of waiting says where they are.
constexpr int kMostPlaces = 8;
constexpr char kMoreTime[] =
    "; a process that computes alone for longer, as in a callback, needs a larger distributed::Options::timeout";

/// The process's group; null without Init.
std::unique_ptr<internal::JoinedGroup>& Group() {
  static auto* const group = new std::unique_ptr<internal::JoinedGroup>;
  return *group;
}

/// Null without Init and where there is one process.
runtime::ProcessGroup* Control() { return Group() == nullptr ? nullptr : Group()->control.get(); }

/// The heartbeats hear of a loss a little later than who has caused it, or waits for the lost rank.
void WaitForLoss(const runtime::ProcessGroup& control) {
  const runtime::Deadline deadline(std::chrono::seconds(1));
  while (control.failure().ok() && !deadline.Passed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace

absl::Status Init(const Options& options) {
  if (IsInitialized()) {
    return absl::FailedPreconditionError("distributed::Init was called before; distributed::Finalize leaves the group");
  }
  absl::StatusOr<internal::JoinedGroup> joined =
      internal::JoinGroup(options, [](const char* name) { return std::getenv(name); });
  if (!joined.ok()) return joined.status();
  Group() = std::make_unique<internal::JoinedGroup>(*std::move(joined));
  return absl::OkStatus();
}

void Finalize(const absl::Status& error) {
  if (!error.ok()) internal::TellOthers(error).IgnoreError();
  const std::unique_ptr<internal::JoinedGroup> group = std::move(Group());
  if (group == nullptr) return;
  group->any_order = nullptr;
  group->communicator = nullptr;
  if (group->control == nullptr) return;
  group->deadline->Cancel();
  group->control->Leave();
}

bool IsInitialized() { return Group() != nullptr; }

int GetRank() { return IsInitialized() ? Group()->place.rank : 0; }

int GetRankSize() { return IsInitialized() ? Group()->place.size : 1; }

int GetLocalRank() { return IsInitialized() ? Group()->place.local_rank : 0; }

int GetLocalRankSize() { return IsInitialized() ? Group()->place.local_size : 1; }

int GetRankThreads() { return IsInitialized() ? Group()->threads : internal::ThreadsOfOneProcess(); }

std::shared_ptr<Communicator> internal::GetCommunicator() { return IsInitialized() ? Group()->communicator : nullptr; }

std::shared_ptr<Communicator> internal::GetTrainingCommunicator() {
  std::shared_ptr<Communicator> group = GetCommunicator();
  if (group == nullptr || GetAutoParallelContext().reduction == GradientReduction::kOrdered) return group;
  std::shared_ptr<Communicator>& any_order = Group()->any_order;
  if (any_order == nullptr) any_order = std::make_shared<AnyOrderCommunicator>(std::move(group));
  return any_order;
}

void internal::NotePlace(std::int64_t step, std::string_view what) {
  if (runtime::ProcessGroup* control = Control()) control->SetPlace(step, what);
}

void internal::NoteActivity(std::string_view what) {
  if (runtime::ProcessGroup* control = Control()) control->SetActivity(what);
}

absl::Status internal::ExplainWait(const absl::Status& status) {
  runtime::ProcessGroup* const control = Control();
  if (control == nullptr || !absl::IsDeadlineExceeded(status)) return status;
  if (!absl::StrContains(status.message(), " has waited ") || absl::StrContains(status.message(), kMoreTime)) {
    return status;
  }
  std::string places;
  int named = 0;
  for (int rank = 0; rank < control->size() && named < kMostPlaces; ++rank) {
    if (rank == control->rank()) continue;
    const std::string place = control->PlaceOf(rank);
    if (place.empty()) continue;
    absl::StrAppend(&places, "; ", place);
    ++named;
  }
  return absl::Status(status.code(), absl::StrCat(status.message(), places, kMoreTime));
}

absl::Status internal::GroupStatus() {
  const runtime::ProcessGroup* const control = Control();
  return control == nullptr ? absl::OkStatus() : control->failure();
}

absl::Status internal::TellOthers(const absl::Status& error) {
  runtime::ProcessGroup* const control = Control();
  if (control == nullptr || error.ok()) return error;
  const bool waited = absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error);
  if (waited) WaitForLoss(*control);
  const absl::Status loss = control->failure();
  if (loss.ok()) {
    const absl::Status told = ExplainWait(error);
    Group()->deadline->Cancel();  // this process knows, and its program decides what it does next
    control->ReportFailure(std::string(told.message())).IgnoreError();
    WaitForLoss(*control);  // which is this one: no later run begins in this group
    return told;
  }
  if (!waited || absl::StrContains(error.message(), loss.message())) return error;
  return absl::Status(error.code(), absl::StrCat(error.message(), "; ", loss.message()));
}

absl::StatusOr<std::string> internal::BytesOfFirst(const std::string& key, std::string bytes) {
  runtime::ProcessGroup* const control = Control();
  if (control == nullptr) return bytes;
  return control->BytesOfFirst(key, bytes);
}

absl::Status internal::CompareWithFirst(const std::string& key, const std::map<std::string, std::string>& texts) {
  runtime::ProcessGroup* const control = Control();
  return control == nullptr ? absl::OkStatus() : control->CompareWithFirst(key, texts);
}

}  // namespace mpc::distributed
