// The way back from regions to the operations that they hold.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// Moves the operations of a region before it and removes the region. The operations themselves stay.
void unfuse(FusionOp fusion);

} // namespace mpc
