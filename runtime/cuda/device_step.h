// The work of one step with every address resolved. It is enqueued on a stream, or recorded as a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/copies.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/branch_plan.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/generated_kernel.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/step_kernels.h"
#include "runtime/program.h"
#include "runtime/step_calls.h"

namespace mpc::runtime {

/// Where a Program's values lie on the device.
struct DeviceAddresses {
  std::byte* arena = nullptr;
  std::byte* constants = nullptr;
  std::vector<void*> state;  ///< one a binding

  void* AddressOf(const Value& value) const;
};

class DeviceStep {
 public:
  /// Calls share kernels, also with calls of other Programs.
  using Call = StepCall<std::shared_ptr<cuda::Kernel>>;

  /// Takes the kernels of `program`, which outlives the step. Allocates the workspace that they need beyond what the
  /// Program plans: for groups, and for a built plan or a replaced choice that wants more. Errors: those of kernels,
  /// with the instruction and its Cell; an output that overlaps what its kernel still reads; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<DeviceStep>> Create(CudaApi& api, const Program& program,
                                                            DeviceAddresses addresses, StepKernels& kernels);

  /// The calls of the step itself.
  const std::vector<Call>& calls() const { return calls_.sequences.front().calls; }
  /// The calls that rebuild derived state, one for each entry of Program::refreshes.
  const std::vector<Call>& refreshes() const { return calls_.refreshes; }
  const DeviceAddresses& addresses() const { return addresses_; }
  /// Device memory of workspaces beyond the Program's arena, which kernels use one after another.
  std::size_t extra_bytes() const { return extra_bytes_; }

  /// Is given each kernel's call once it is enqueued. An error ends the call that holds it.
  using AfterKernel = std::function<absl::Status(const Call&)>;
  /// Enqueues one call, with the sequences that it calls. `after` may be null. Errors: the kernel's, with the program,
  /// the instruction and its Cell; those of `after`.
  absl::Status Enqueue(const Call& call, cuda::LaunchQueue& queue, const AfterKernel& after = nullptr) const;
  /// Program, instruction and Cell of a call, for errors.
  std::string Describe(const Call& call) const;
  /// The device memory that `call` touches. A call of a sequence or of several processes is to run alone.
  CallMemory MemoryOf(const Call& call) const;
  absl::Status EnqueueStateCopies(cuda::LaunchQueue& queue) const;

 private:
  DeviceStep(CudaApi& api, const Program& program, DeviceAddresses addresses, std::shared_ptr<NcclGroup> group)
      : api_(api), program_(program), addresses_(std::move(addresses)), group_(std::move(group)) {}

  absl::Status AddCalls(StepKernels& kernels);
  absl::Status PlaceExtraWorkspaces();
  absl::Status EnqueueKernel(const Call& call, cuda::LaunchQueue& queue) const;
  absl::Status EnqueueCopies(const std::vector<CopyRange>& copies, cuda::LaunchQueue& queue) const;
  bool IsRefresh(const Call& call) const;
  /// Whether the call is one of several processes.
  bool WaitsForOthers(const Call& call) const;

  CudaApi& api_;
  const Program& program_;
  DeviceAddresses addresses_;
  const std::shared_ptr<NcclGroup> group_;  ///< null where this process trains alone
  GeneratedCode code_;
  StepCalls<std::shared_ptr<cuda::Kernel>> calls_;
  DeviceMemory extra_workspace_;
  std::size_t extra_bytes_ = 0;
};

}  // namespace mpc::runtime
