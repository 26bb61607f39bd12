// How fast pictures were read, as text and as JSON.
#pragma once

#include <string>

#include "tools/mpc-bench/data_contest.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

/// A line for each program with pictures a second, how far pixels are apart, and mpc's rate over the best peer's.
std::string FormatDataTable(const DataOptions& options, const DataTable& table);
/// `pictures`, `bytes`, `batch`, `pixels` (levels between the programs) and `rows`: one for each peer, or one without.
/// A row has `mpc` and `peer` (pictures a second), and `ratio`, which is above 1 where mpc is faster. Each has
/// `median`, `p5`, `p95`. `best` is true of the peer with the highest median.
Json DataTableToJson(const DataOptions& options, const DataTable& table);

}  // namespace mpc::tools
