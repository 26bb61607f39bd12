// The messages that a step sends to other processes, as plain rows. They are the data behind that part of the report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::compiler {

/// Collectives that travel as one message.
struct MessageRow {
  std::vector<std::string> operations; ///< "all_reduce", in program order
  std::int64_t bytes = 0;              ///< that each process gives
};

struct MessageTable {
  std::int64_t processes = 1;   ///< that exchange the messages; 1 where there is none
  std::vector<MessageRow> rows; ///< in program order; a message's number is its position, from 1

  /// Bytes that each process gives in a step.
  std::int64_t bytes() const;
};

/// The messages of function `function` and of those that it calls, which count once. Before mpc-buckets each collective
/// is a message of its own. Errors: NOT_FOUND where the module has no such function with a body.
absl::StatusOr<MessageTable> TabulateMessages(const Module &module, const std::string &function);

} // namespace mpc::compiler
