// Names the first value of a step that is not finite.
#pragma once

#include <string>
#include <vector>

#include "frontend/inspect/value_statistics.h"

namespace mpc {

/// Describes the overflow of a replayed step in several lines. They name the first value that is not finite: its
/// operation, Cell and direction, and how many elements are not finite. They also name the largest finite magnitude
/// before it and where that stood. The last lines list the parameters and inputs with magnitudes beyond 65504, the
/// largest f16. `values` are in program order; `loss_scale` is the scale of the step.
std::string DiagnoseOverflow(const std::vector<ValueStatistics>& values, double loss_scale);

}  // namespace mpc
