// How long a kernel takes on this processor.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"

namespace mpc::runtime {

/// The time of one run of `kernel` in microseconds, on operands of its own: random numbers in [-1, 1), which are
/// neither denormal nor absent as zeros would be; integers and flags are 0, which is in every range. Errors
/// (RESOURCE_EXHAUSTED): no memory for them; those of creating "random".
absl::StatusOr<double> TimeKernel(const KernelSpec& spec, cpu::Kernel& kernel);

/// What measurements depend on: "Intel(R) Xeon(R) Processor (6-173-1) with 2 threads, oneDNN 2.6.3".
std::string MeasuredOn();

}  // namespace mpc::runtime
