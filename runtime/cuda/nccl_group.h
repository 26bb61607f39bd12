// The GPUs of the processes that train together, one each: what their steps exchange by NCCL, and how long the host
// waits for that.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/communicator.h"
#include "kernels/cuda/collectives.h"
#include "kernels/cuda/kernel.h"
#include "kernels/dtype.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/nccl_api.h"
#include "runtime/distributed/tree_rounds.h"

namespace mpc::runtime {

/// One operand of an exchange. Of a sum `input` and `output` are equal or do not overlap.
struct DevicePart {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t elements = 0;
  DType dtype = DType::kF32;  ///< f32, f16 or bf16 in a sum

  std::size_t bytes() const { return elements * ElementSize(dtype); }
};

/// A communicator of NCCL. Sums have the bits of the balanced tree over ranks, as those of every transport: GPUs
/// exchange halves, and a kernel of mpc adds. NCCL's own order of additions is another one. Processes that add in any
/// order (Communicator::adds_in_any_order) get it.
///
/// The first error aborts the communicator, so that work under way ends, and stays: every later call returns it. It
/// names this rank, and the instruction that the device has begun last. Not thread-safe.
class NcclGroup {
 public:
  /// What the group works with. `nccl` is an error where this process has none. Both tables outlive the group.
  struct Place {
    CudaApi* cuda = nullptr;
    absl::StatusOr<NcclApi*> nccl;
    CudaApi::Stream stream = nullptr;  ///< where the steps run
    std::string gpu;                   ///< another one in each process
  };

  /// Every process of `processes` calls this. NCCL's id goes from rank 0 to the others by way of `processes`. Before it
  /// returns, each path that sums take has been walked once. Steps wait for other processes as long as calls of
  /// `processes` do.
  ///
  /// Errors that all ranks have. UNAVAILABLE: a rank has no NCCL, with its reason. FAILED_PRECONDITION: versions of
  /// NCCL that differ, or two ranks on one GPU. Errors of one rank are those of NCCL, of CUDA and of waiting for
  /// others.
  static absl::StatusOr<std::unique_ptr<NcclGroup>> Open(const Place& place,
                                                         const std::shared_ptr<Communicator>& processes);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The first error.
  const absl::Status& status() const { return status_; }
  /// Whether it was opened for `processes`, which still exist.
  bool IsOf(const std::shared_ptr<Communicator>& processes) const { return processes_.lock() == processes; }

  // What a step does. It is put on a queue, which may record it. Errors: those of NCCL and CUDA.

  /// Sums `parts` as one message. `workspace` has SumWorkspace of their sizes.
  absl::Status EnqueueSums(absl::Span<const DevicePart> parts, void* workspace, cuda::LaunchQueue& queue);
  /// Gathers each of `parts`, of any type: its output has the input of every rank, in the order of ranks.
  absl::Status EnqueueGathers(absl::Span<const DevicePart> parts, cuda::LaunchQueue& queue);
  /// The largest i32 of all ranks, for each of `parts`.
  absl::Status EnqueueLargest(absl::Span<const DevicePart> parts, cuda::LaunchQueue& queue);
  /// Notes that what follows on the queue is of the instruction that `text` describes, and may wait for others.
  absl::Status EnqueuePlace(const std::string& text, cuda::LaunchQueue& queue);
  /// Notes that what follows on the queue is this process's own work, until the next place.
  absl::Status EnqueueEndOfPlace(cuda::LaunchQueue& queue);

  /// Aborts for a reason of this process, so that nothing waits for others any more. The first error counts. Returns
  /// it, with who and where.
  const absl::Status& Fail(const absl::Status& status);

  /// Waits until `done` is true, or an error. It asks `done` and NCCL, and never waits inside CUDA. Where the device is
  /// at a place and others do not come within the time limit, or one is lost, it aborts. Time that the device takes for
  /// its own work does not count. Behind an abort it waits for the device as long as the limit once more.
  /// Errors: the group's first one where it occurs in this call, those of `done`, and DEADLINE_EXCEEDED.
  absl::Status WaitUntil(const std::function<absl::StatusOr<bool>()>& done);

 private:
  using Clock = std::chrono::steady_clock;
  /// A wait of the host.
  struct Watch {
    Clock::time_point begin = Clock::now();
    Clock::time_point looked = begin;  ///< when NCCL and the processes were asked last
    Clock::time_point lost = {};       ///< when a process was first found to be lost
    std::int32_t changes = 0;          ///< DevicePlace::changes when it was read last
  };

  NcclGroup(const Place& place, const std::shared_ptr<Communicator>& processes);

  /// Tells all ranks what this one has, and keeps the id of rank 0. Errors: what some rank lacks.
  absl::Status Agree(Communicator& processes, const Place& place);
  absl::Status Create();
  absl::Status WalkAllPaths();
  absl::Status EnqueueSumsOfNccl(absl::Span<const DevicePart> parts, cuda::LaunchQueue& queue);
  /// One round for all parts. Each part sends a range of its input in the first round, and of its output later. Where
  /// there is a workspace, it receives there and adds; otherwise it receives into its output.
  absl::Status ExchangeRanges(const distributed::TreeRound& round, bool is_first, absl::Span<const DevicePart> parts,
                              void* workspace, cuda::LaunchQueue& queue);
  /// Calls `calls` as one group of NCCL, and waits until NCCL has taken them.
  absl::Status InGroup(const std::function<absl::Status()>& calls);
  /// Waits until NCCL has taken what was called.
  absl::Status Settle();
  /// Fails where there is a reason to wait no longer.
  absl::Status Look(Watch& watch);
  absl::Status LookForLoss(Watch& watch, Clock::time_point now);
  /// What the device has said last.
  cuda::DevicePlace LastPlace() const;
  /// Whether the device waits for others. Begins `watch` anew where it does not, and where it has gone on.
  bool AwaitsOthers(Watch& watch) const;
  std::string Where() const;

  CudaApi& cuda_;
  NcclApi* nccl_ = nullptr;
  const CudaApi::Stream stream_;
  const std::weak_ptr<Communicator> processes_;
  const int rank_;
  const int size_;
  const bool adds_in_any_order_;
  const std::chrono::milliseconds time_limit_;
  const std::vector<distributed::TreeRound> halving_, gathering_;
  NcclId id_{};
  NcclApi::Communicator communicator_ = nullptr;
  bool is_open_ = false;             ///< from then on the device says where it waits for others
  PinnedMemory place_;               ///< a cuda::DevicePlace
  std::vector<std::string> places_;  ///< place i + 1
  std::int32_t last_place_ = 0;      ///< the place that was enqueued last
  absl::Status status_;
};

/// The scratch memory of EnqueueSums for parts of these bytes over `size` ranks: what one round receives.
std::size_t SumWorkspace(absl::Span<const std::size_t> bytes, int size);

}  // namespace mpc::runtime
