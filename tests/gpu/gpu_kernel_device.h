// The CUDA kernels on the GPU of this machine, one at a time, between guards.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/kernels/kernel_device.h"

namespace mpc::test {

/// OK where there is a GPU that mpc can use; UNAVAILABLE where there is none; else what is wrong with it.
const absl::Status& GpuStatus();

/// `use_libraries` false: the project's own kernels alone. GpuStatus() is OK.
const KernelDevice& GpuKernels(bool use_libraries);

/// With the libraries, and at most `workspace_cap` bytes of workspace for a kernel.
std::unique_ptr<KernelDevice> GpuKernelsWithin(std::size_t workspace_cap);

/// The choices that tuning measures for `spec`. Errors: those of cuda::CandidateChoices.
absl::StatusOr<std::vector<std::string>> GpuCandidates(const KernelSpec& spec);

/// The kernel that `choice` names, one of GpuCandidates.
std::unique_ptr<KernelDevice> GpuKernelsChosen(std::string choice);

}  // namespace mpc::test
