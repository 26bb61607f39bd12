// How long sums over processes take on their own.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/mpc-bench/rank_options.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

/// Messages of one size, through slots of one size.
struct ReductionTimes {
  std::int64_t elements = 0;
  std::int64_t slot_bytes = 0;
  std::vector<double> seconds;  ///< one a message, as rank 0 sees it
};

/// Starts `options.ranks` - 1 processes, which reduce with this one. Sizes take turns, so that what else the machine
/// does falls on all of them. Ranks meet before each message. Errors: those of CreateSharedCommunicator and of its
/// functions; no process can be started.
absl::StatusOr<std::vector<ReductionTimes>> MeasureReductions(const ReductionOptions& options);

/// A table in milliseconds, and bytes of the message over the median time.
std::string FormatReductions(const ReductionOptions& options, const std::vector<ReductionTimes>& times);

/// `ranks`, `processors`, `dtype`, `transport`, `processor`, and `rows` with `elements`, `bytes`, `slot_bytes` and
/// `seconds`: `median`, `p5`, `p95`, `least`.
Json ReductionsToJson(const ReductionOptions& options, const std::vector<ReductionTimes>& times);

}  // namespace mpc::tools
