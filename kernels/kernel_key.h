// The name of a kernel spec in tables, caches and messages.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel_spec.h"

namespace mpc {

/// "tensor<2xf32>, tensor<f32>".
std::string TypesOf(const std::vector<TensorSpec>& specs);

/// "conv2d(tensor<..>,tensor<..>)->(tensor<..>){strides=[1,1],...}": all that a kernel is created from.
std::string KernelKey(const KernelSpec& spec);

}  // namespace mpc
