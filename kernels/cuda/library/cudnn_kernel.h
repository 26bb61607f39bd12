// Kernels that cuDNN runs.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/kernel.h"

namespace mpc::cuda {

class CudnnKernel : public Kernel {
 public:
  /// Numerical notes of every engine in use, as cuDNN spells them without prefix: "TENSOR_CORE".
  virtual std::vector<std::string> numerical_notes() const = 0;
};

}  // namespace mpc::cuda
