#include "runtime/cuda/device_state.h"

#include <utility>

#include "runtime/program_check.h"

namespace mpc::runtime {
namespace {

CudaStateCopy& CopyOf(const StateEntry& entry) { return static_cast<CudaStateCopy&>(*entry.device_copy()); }

}  // namespace

DeviceState::DeviceState(const Program& program, StateEntries entries) : entries_(std::move(entries)) {
  const std::vector<StateUse> uses = FindStateUses(program);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (uses[i].written) written_.push_back(entries_[i].get());
  }
  for (const StateRefresh& refresh : program.refreshes) {
    const bool written = program.state[refresh.derived].written;
    refreshes_.push_back({entries_[refresh.derived].get(), entries_[refresh.source].get(), written,
                          uses[refresh.source].written && !written});
  }
}

absl::Status DeviceState::BringUpToDate(const DeviceStep& step, cuda::LaunchQueue& queue) {
  for (const std::shared_ptr<StateEntry>& entry : entries_) {
    if (!entry->initialised()) continue;
    CudaStateCopy& copy = CopyOf(*entry);
    if (entry->device_is_current()) {
      if (!copy.broken().ok()) return copy.broken();
      continue;
    }
    if (absl::Status status = copy.Upload(*entry); !status.ok()) return status;
    entry->MarkUploaded();
  }
  for (std::size_t i = 0; i < refreshes_.size(); ++i) {
    const Refresh& refresh = refreshes_[i];
    if (refresh.derived->Follows(*refresh.source)) continue;
    if (absl::Status status = step.Enqueue(step.refreshes()[i], queue); !status.ok()) return status;
    refresh.derived->MarkWrittenOnDevice();
    refresh.derived->MarkFollowing(*refresh.source);
  }
  return absl::OkStatus();
}

absl::Status DeviceState::EnqueueRefreshesBetweenSteps(const DeviceStep& step, cuda::LaunchQueue& queue) const {
  for (std::size_t i = 0; i < refreshes_.size(); ++i) {
    if (!refreshes_[i].between_steps) continue;
    if (absl::Status status = step.Enqueue(step.refreshes()[i], queue); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void DeviceState::MarkStepsStarted(std::size_t steps) {
  for (StateEntry* entry : written_) entry->MarkWrittenOnDevice();
  for (const Refresh& refresh : refreshes_) {
    if (refresh.written) refresh.derived->MarkFollowing(*refresh.source);
    if (refresh.between_steps && steps > 1) refresh.derived->MarkWrittenOnDevice();
  }
}

void DeviceState::MarkBroken(const absl::Status& why) {
  for (StateEntry* entry : written_) {
    entry->MarkWrittenOnDevice();  // what the host has is no longer what the device has
    CopyOf(*entry).MarkBroken(why);
  }
}

}  // namespace mpc::runtime
