// The work of one step with every address resolved: what is enqueued on a stream, or recorded as a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/copies.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/generated_kernel.h"
#include "runtime/cuda/handles.h"
#include "runtime/cuda/step_kernels.h"
#include "runtime/program.h"
#include "runtime/step_groups.h"

namespace mpc::runtime {

/// Where a Program's values lie on the device.
struct DeviceAddresses {
  std::byte* arena = nullptr;
  std::byte* constants = nullptr;
  std::vector<void*> state;  ///< one a binding

  void* Of(const Value& value) const;
};

class DeviceStep {
 public:
  /// One kernel: an instruction, or several that share a launch.
  struct Call {
    std::shared_ptr<cuda::Kernel> kernel;  ///< other calls, also of other Programs, may have the same
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    void* workspace = nullptr;    ///< null in creation: beyond the arena, where the kernel wants any
    std::size_t instruction = 0;  ///< the first one
    std::size_t instructions = 1;
    std::string range;  ///< its name in profiles: the Cell path and the mnemonic
  };

  /// Takes the kernels of `program`, which outlives the step, and allocates the workspace that they need beyond what it
  /// plans: groups, a built plan or a replaced choice that wants more. Errors: those of kernels, with the instruction
  /// and its Cell; an output that overlaps what its kernel still reads; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<DeviceStep>> Create(CudaApi& api, const Program& program,
                                                            DeviceAddresses addresses, StepKernels& kernels);

  const std::vector<Call>& calls() const { return calls_; }
  /// Rebuilds derived state: one a Program::refreshes.
  const std::vector<Call>& refreshes() const { return refreshes_; }
  const DeviceAddresses& addresses() const { return addresses_; }
  /// Device memory of workspaces beyond the Program's arena, which kernels use one after another.
  std::size_t extra_bytes() const { return extra_bytes_; }

  /// Enqueues one call. Errors: the kernel's, with the program, the instruction and its Cell.
  absl::Status Enqueue(const Call& call, cuda::LaunchQueue& queue) const;
  absl::Status EnqueueStateCopies(cuda::LaunchQueue& queue) const;

 private:
  DeviceStep(CudaApi& api, const Program& program, DeviceAddresses addresses)
      : api_(api), program_(program), addresses_(std::move(addresses)) {}

  absl::StatusOr<Call> MakeCall(const Instruction& instruction, StepKernels& kernels);
  absl::StatusOr<Call> MakeGroup(const InstructionRange& range, const cuda::KernelContext& context);
  void AddOperands(const Instruction& instruction, Call& call) const;
  absl::Status AddCalls(StepKernels& kernels);
  absl::Status AddRefreshes(StepKernels& kernels);
  absl::Status PlaceExtraWorkspaces();
  void AddStateCopies();
  std::string Describe(const Call& call) const;

  CudaApi& api_;
  const Program& program_;
  DeviceAddresses addresses_;
  GeneratedCode code_;
  std::vector<Call> calls_;
  std::vector<Call> refreshes_;
  std::vector<std::vector<cuda::CopyRange>> state_copies_;  ///< one after another; those of one at once
  DeviceMemory extra_workspace_;
  std::size_t extra_bytes_ = 0;
};

}  // namespace mpc::runtime
