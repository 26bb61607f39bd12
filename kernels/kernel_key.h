// The name of a kernel spec in tables and caches.
#pragma once

#include <string>

#include "kernels/kernel_spec.h"

namespace mpc {

/// "conv2d(tensor<..>,tensor<..>)->(tensor<..>){strides=[1,1],...}": all that a kernel is created from.
std::string KernelKey(const KernelSpec& spec);

}  // namespace mpc
