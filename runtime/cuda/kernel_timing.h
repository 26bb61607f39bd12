// How long a kernel takes on a GPU.
#pragma once

#include "absl/status/statusor.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_context.h"

namespace mpc::runtime {

/// The time of one run of `kernel` in microseconds, on operands of the device's own: random numbers in [-1, 1), whose
/// products draw the power, and so leave the clock, that those of a training do; integers and flags are 0, which is in
/// every range. Errors: the kernel's, no memory.
absl::StatusOr<double> TimeKernel(CudaContext& context, const KernelSpec& spec, cuda::Kernel& kernel);

}  // namespace mpc::runtime
