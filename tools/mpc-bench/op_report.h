// How operations compare with the limits of the machine, as text and as JSON.
#pragma once

#include <string>

#include "tools/mpc-bench/op_bench.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

/// The limits, then a line for each graph: time, GB/s, GFLOP/s where there is matrix work, and the fraction of the
/// limit.
std::string FormatOpTable(const OpOptions& options, const OpTable& table);
/// `limits` and `rows`: `op`, `shape`, `dtype`, `seconds`, `bytes_per_second`, `flops_per_second`, `limit`, `fraction`.
Json OpTableToJson(const OpOptions& options, const OpTable& table);

}  // namespace mpc::tools
