// Opens libmpc_cuda.so, the CUDA backend: everything else runs without a driver, and without CUDA.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "runtime/executable.h"

namespace mpc::runtime {

/// This machine's GPU. The library is looked for in MPC_CUDA_LIBRARY, beside the running program, in ../lib of it and
/// in the build folder. Errors: UNAVAILABLE where the build has no CUDA backend, or the library cannot be opened (with
/// the loader's reason). UNAVAILABLE also where there is no device, or its driver is too old. FAILED_PRECONDITION for a
/// library of another version.
absl::StatusOr<const Device*> OpenCudaDevice();

/// A GPU to compile for, present or not: "sm_80" or "sm_90". Errors: those of OpenCudaDevice, except those about the
/// device; INVALID_ARGUMENT for another architecture, with the known ones.
absl::StatusOr<const Device*> OpenCudaTarget(std::string_view arch);

/// Opens NCCL for this machine's GPU and those of all `processes`; every process calls it. Errors: those of
/// OpenCudaDevice, and of NcclGroup::Open.
absl::Status JoinGpus(const std::shared_ptr<Communicator>& processes);

}  // namespace mpc::runtime
