#include "frontend/distributed/distributed.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "frontend/distributed/join_group.h"

namespace mpc::distributed {
namespace {

/// The process's group; null without Init.
std::unique_ptr<internal::JoinedGroup>& Group() {
  static auto* const group = new std::unique_ptr<internal::JoinedGroup>;
  return *group;
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

void Finalize() {
  const std::unique_ptr<internal::JoinedGroup> group = std::move(Group());
  if (group == nullptr) return;
  group->communicator = nullptr;
  if (group->control != nullptr) group->control->Leave();
}

bool IsInitialized() { return Group() != nullptr; }

int GetRank() { return IsInitialized() ? Group()->place.rank : 0; }

int GetRankSize() { return IsInitialized() ? Group()->place.size : 1; }

int GetLocalRank() { return IsInitialized() ? Group()->place.local_rank : 0; }

int GetLocalRankSize() { return IsInitialized() ? Group()->place.local_size : 1; }

std::shared_ptr<Communicator> internal::GetCommunicator() { return IsInitialized() ? Group()->communicator : nullptr; }

}  // namespace mpc::distributed
