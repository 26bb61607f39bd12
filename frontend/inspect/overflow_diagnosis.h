// Names the first value of a step that is not finite.
#pragma once

#include <string>
#include <vector>

#include "frontend/inspect/value_statistics.h"

namespace mpc {

/// Describes the overflow of a replayed step in several lines. They name the first value that is not finite: its
/// operation, Cell and direction, and how many elements are not finite. They also name the largest finite magnitude
/// before it and where that stood. Further lines list the parameters and inputs that are not finite. In a step that
/// stores f16 they also list those with magnitudes beyond 65504, the largest f16. Where the first value is a parameter
/// or an input, the first five that operations computed follow: an infinity of a mask may be meant. `values` are in
/// program order; `loss_scale` is the scale of the step.
std::string DiagnoseOverflow(const std::vector<ValueStatistics>& values, double loss_scale);

}  // namespace mpc
