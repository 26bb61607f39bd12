#include "runtime/cuda/step_branches.h"

#include <algorithm>
#include <utility>

namespace mpc::runtime {

absl::StatusOr<StepBranches> StepBranches::Create(CudaApi& api, const DeviceStep& step, std::size_t branches) {
  StepBranches created;
  created.api_ = &api;
  std::vector<CallMemory> memory;
  for (const DeviceStep::Call& call : step.calls()) memory.push_back(step.MemoryOf(call));
  created.places_ = PlanBranches(memory, branches);
  if (absl::Status status = created.CreateEvents(api); !status.ok()) return status;
  return created;
}

absl::Status StepBranches::CreateEvents(CudaApi& api) {
  std::size_t side_streams = 0;
  std::vector<std::size_t> last(1);
  std::vector<bool> awaited(places_.size());
  for (std::size_t call = 0; call < places_.size(); ++call) {
    const BranchPlace& place = places_[call];
    for (const std::size_t earlier : place.awaits) awaited[earlier] = true;
    side_streams = std::max(side_streams, place.branch);
    last.resize(side_streams + 1);
    last[place.branch] = call;
  }
  // The end of the step awaits the last call of each side branch.
  for (std::size_t branch = 1; branch < last.size(); ++branch) awaited[last[branch]] = true;
  streams_.resize(side_streams);
  for (OwnedStream& stream : streams_) {
    if (absl::Status status = Keep(api, api.CreateStream(), stream); !status.ok()) return status;
  }
  done_.resize(places_.size());
  for (std::size_t call = 0; call < places_.size(); ++call) {
    if (!awaited[call]) continue;
    if (absl::Status status = Keep(api, api.CreateEvent(false), done_[call]); !status.ok()) return status;
  }
  return streams_.empty() ? absl::OkStatus() : Keep(api, api.CreateEvent(false), begin_);
}

absl::Status StepBranches::Enqueue(const DeviceStep& step, StreamQueue& main) const {
  std::vector<StreamQueue> sides;
  for (const OwnedStream& stream : streams_) sides.emplace_back(*api_, stream.get());
  std::vector<std::size_t> last(sides.size());
  if (!sides.empty()) {
    if (absl::Status status = main.Record(begin_.get()); !status.ok()) return status;
    for (StreamQueue& side : sides) {
      if (absl::Status status = side.Await(begin_.get()); !status.ok()) return status;
    }
  }
  for (std::size_t call = 0; call < places_.size(); ++call) {
    const BranchPlace& place = places_[call];
    StreamQueue& queue = place.branch == 0 ? main : sides[place.branch - 1];
    for (const std::size_t earlier : place.awaits) {
      if (absl::Status status = queue.Await(done_[earlier].get()); !status.ok()) return status;
    }
    if (absl::Status status = step.Enqueue(step.calls()[call], queue); !status.ok()) return status;
    if (done_[call].get() != nullptr) {
      if (absl::Status status = queue.Record(done_[call].get()); !status.ok()) return status;
    }
    if (place.branch > 0) last[place.branch - 1] = call;
  }
  for (const std::size_t call : last) {
    if (absl::Status status = main.Await(done_[call].get()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace mpc::runtime
