// max_pool2d and its gradient for few channels, channels-last, without padding: rows are rearranged so that every lane
// of a vector holds a result.
#pragma once

#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/pool_geometry.h"

namespace mpc::cpu {

/// The kernel for this geometry; null where the general one has to be used.
std::unique_ptr<Kernel> MakeNarrowMaxPool(const KernelSpec& spec, const PoolGeometry& geometry);

}  // namespace mpc::cpu
