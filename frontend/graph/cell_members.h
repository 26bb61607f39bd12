// Walks over the Cells and Parameters below a Cell.
#pragma once

#include <functional>
#include <string>

#include "frontend/graph/cell.h"

namespace mpc::nn::internal {

using OnCell = std::function<void(const std::string& name, Cell& cell)>;
using OnParameter = std::function<void(const std::string& name, Parameter& parameter)>;

/// Calls one of the functions with each member that `cell` registers itself, in their order. A Parameter may be
/// undefined.
void ForEachMember(Cell& cell, const OnCell& on_cell, const OnParameter& on_parameter);
void ForEachMember(Cell& cell, const OnCell& on_cell);
void ForEachMember(Cell& cell, const OnParameter& on_parameter);

/// Calls `function` with `cell` and with each Cell below it. A Cell comes before those below it, and as often as it is
/// registered.
void ForEachCell(Cell& cell, const std::function<void(Cell& each)>& function);

}  // namespace mpc::nn::internal
