// Every NCCL call that the runtime makes, behind one table of functions, as CudaApi is for CUDA. The real table opens
// libnccl.so.2 when it is asked for. Tests use a table on the host. This file includes no header of NCCL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "runtime/cuda/cuda_api.h"

namespace mpc::runtime {

/// What the ranks of a communicator have in common: ncclUniqueId.
using NcclId = std::array<char, 128>;

/// Errors carry the call and NCCL's own words. Communicators are non-blocking: a call may return before it is done, and
/// Settled says when it is. Until then nothing else is called on the communicator but Settled and Abort.
class NcclApi {
 public:
  using Communicator = void*;

  virtual ~NcclApi() = default;

  /// "2.28.9". Equal on all ranks of a communicator.
  virtual std::string Version() = 0;
  virtual absl::StatusOr<NcclId> MakeId() = 0;
  /// Begins to make rank `rank` of `size` on the current device. All ranks call it with one id.
  virtual absl::StatusOr<Communicator> Create(const NcclId& id, int rank, int size) = 0;
  /// True when everything that was called is done, false while it is under way. Errors: what NCCL met since. Waits for
  /// nothing.
  virtual absl::StatusOr<bool> Settled(Communicator communicator) = 0;
  /// Ends work under way on the device, which leaves its results undefined, and gives the communicator back when no
  /// graph holds its work. It waits for nothing, so that a communicator whose work is done is given back by it too.
  virtual absl::Status Abort(Communicator communicator) = 0;

  // Calls between these two are one: they may run at once, and none begins before EndGroup.
  virtual absl::Status BeginGroup() = 0;
  virtual absl::Status EndGroup() = 0;

  // Work on a stream, with memory of the device. One thread calls them inside a group.
  virtual absl::Status Send(const void* data, std::size_t bytes, int peer, Communicator communicator,
                            CudaApi::Stream stream) = 0;
  virtual absl::Status Receive(void* data, std::size_t bytes, int peer, Communicator communicator,
                               CudaApi::Stream stream) = 0;
  /// `output` has the `bytes` of every rank's `input`, in the order of ranks.
  virtual absl::Status AllGather(const void* input, void* output, std::size_t bytes, Communicator communicator,
                                 CudaApi::Stream stream) = 0;
  /// The sum of each f32, f16 or bf16 over all ranks, in NCCL's order. `input` may be `output`.
  virtual absl::Status AllReduceSum(const void* input, void* output, std::size_t elements, DType dtype,
                                    Communicator communicator, CudaApi::Stream stream) = 0;
  /// The largest of each i32 over all ranks. `input` may be `output`.
  virtual absl::Status AllReduceMax(const void* input, void* output, std::size_t elements, Communicator communicator,
                                    CudaApi::Stream stream) = 0;
};

}  // namespace mpc::runtime
