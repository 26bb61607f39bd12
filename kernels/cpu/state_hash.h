// The kernel of records of the state, which is no operation of the IR.
#pragma once

#include "kernels/cpu/registry.h"

namespace mpc::cpu {

void RegisterStateHash(Registry& registry);

}  // namespace mpc::cpu
