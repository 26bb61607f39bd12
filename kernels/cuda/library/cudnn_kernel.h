// Kernels that cuDNN runs.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/kernel.h"

namespace mpc::cuda {

class CudnnKernel : public Kernel {
 public:
  /// Numerical notes of every engine in use, one engine after the other, as cuDNN spells them without prefix:
  /// "TENSOR_CORE". Engines may repeat a note.
  virtual std::vector<std::string> numerical_notes() const = 0;

  /// Finalises what was only chosen without a device: engines that are compiled at run time are compiled now, for the
  /// architecture of the context. workspace_bytes() counts what the finalised plans say. Needs a driver library that
  /// takes code. Errors (UNIMPLEMENTED): cuDNN refuses a plan, with its reason.
  virtual absl::Status BuildPlans() = 0;
};

}  // namespace mpc::cuda
