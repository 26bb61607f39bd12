// Ratios as a picture.
#pragma once

#include <string>
#include <vector>

#include "tools/support/json_file.h"

namespace mpc::tools {

/// An SVG bar chart of the rows that have a peer (RowsToJson). It has a group of bars for each network, batch and mode,
/// with a bar for each peer. A bar is as long as the ratio's median; its whisker goes from p5 to p95. Colours follow
/// the reader's light or dark scheme; no script, no font of its own.
std::string RatioChart(const std::vector<Json>& rows);

}  // namespace mpc::tools
