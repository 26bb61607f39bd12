// The kernel of records of the state, which is no operation of the IR.
#pragma once

#include "kernels/cuda/registry.h"

namespace mpc::cuda {

void RegisterStateHash(Registry& registry);

}  // namespace mpc::cuda
