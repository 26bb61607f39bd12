// How long a kernel takes on a GPU.
#pragma once

#include "absl/status/statusor.h"
#include "kernels/cuda/kernel.h"
#include "runtime/cuda/cuda_context.h"

namespace mpc::runtime {

/// The time of one run of `kernel` in microseconds. The operands are made on the device for the measurement. Floating
/// operands are random numbers in [-1, 1). Their products draw as much power as those of a training, so that the clock
/// is the same. Integers and flags are 0, which is in every range. Errors: the kernel's, no memory.
absl::StatusOr<double> TimeKernel(CudaContext& context, const KernelSpec& spec, cuda::Kernel& kernel);

}  // namespace mpc::runtime
