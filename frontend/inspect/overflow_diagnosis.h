// Names the first value of a step that is not finite.
#pragma once

#include <string>
#include <vector>

#include "frontend/inspect/value_statistics.h"

namespace mpc {

/// What a replayed step says about an overflow, as text of several lines: the first value that is not finite (its
/// operation, Cell, direction, how many elements), the largest finite magnitude before it and where it stood, and the
/// parameters and inputs with magnitudes beyond 65504, the largest f16. `values` are in program order; `loss_scale` is
/// the scale of the step.
std::string DiagnoseOverflow(const std::vector<ValueStatistics>& values, double loss_scale);

}  // namespace mpc
