// Walks over the Cells and Parameters below a Cell.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

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

/// A Parameter with every path that leads to it, in the order in which they are found: a tied one has several.
struct PathsOfParameter {
  std::vector<std::string> paths;
  Parameter parameter;

  /// Whether one of the paths is `path` or lies below it.
  bool LiesIn(std::string_view path) const;
  bool IsAt(std::string_view path) const;
};

/// Whether the dotted `name` is `path` or lies below it. A path may end in a dot.
bool LiesIn(std::string_view name, std::string_view path);

/// What Cell::ParametersAndNames lists, with all paths.
std::vector<PathsOfParameter> ParametersAndPaths(Cell& cell);

}  // namespace mpc::nn::internal
