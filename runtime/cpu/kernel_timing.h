// How long a kernel takes on this processor.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"

namespace mpc::runtime {

/// The time of one run of `kernel` in microseconds. The operands are made for the measurement. Floating operands are
/// random numbers in [-1, 1), since zeros or denormal numbers would take other times. Integers and flags are 0, which
/// is in every range. Errors: RESOURCE_EXHAUSTED where there is no memory for the operands; those of creating "random".
absl::StatusOr<double> TimeKernel(const KernelSpec& spec, cpu::Kernel& kernel);

/// The machine and versions that measurements depend on: "Intel(R) Xeon(R) Processor (6-173-1) with 2 threads, oneDNN
/// 2.6.3".
std::string MeasuredOn();

}  // namespace mpc::runtime
