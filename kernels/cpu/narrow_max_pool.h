// max_pool2d for few channels, channels-last, without padding, and the gradient of windows that share no pixel. Rows
// are rearranged so that every lane of a vector holds a result.
#pragma once

#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/pool_geometry.h"

namespace mpc::cpu {

/// The kernels for this geometry; null where the general ones have to be used.
std::unique_ptr<Kernel> MakeNarrowMaxPool(const KernelSpec& spec, const PoolGeometry& geometry);
std::unique_ptr<Kernel> MakeNarrowMaxPoolGrad(const KernelSpec& spec, const PoolGeometry& geometry);

}  // namespace mpc::cpu
