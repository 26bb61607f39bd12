// Ratios as a picture.
#pragma once

#include <string>
#include <vector>

#include "tools/support/json_file.h"

namespace mpc::tools {

/// An SVG bar chart of the rows that have a peer (RowsToJson): a group of bars for each network, batch and mode, a bar
/// for each peer as long as the ratio's median, a whisker from p5 to p95. Colours follow the reader's light or dark
/// scheme; no script, no font of its own.
std::string RatioChart(const std::vector<Json>& rows);

}  // namespace mpc::tools
