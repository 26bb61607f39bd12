// A step as one page for a browser: docs/precision.md. Free of MLIR headers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/compile_result.h"

namespace mpc::compiler {

/// A step at one level: compiled, or the reason why it is not.
struct PageLevel {
  std::string level;                     ///< "O2"
  const CompileResult *result = nullptr; ///< null where the step does not compile at this level
  std::string why_not;                   ///< what the compiler said where `result` is null
};

/// An HTML page that shows the step of \p network: Cells, operations with types, reasons and casts, regions, memory.
/// \p levels are what its slider chooses from, and level number \p opened is shown first. The page needs no other file
/// and no network. It holds its data as JSON, which tests/tools/step_page_test.py reads. Errors: INVALID_ARGUMENT
/// where the level to open is not there or has no result; what PrecisionReport reports.
absl::StatusOr<std::string> StepPage(const std::string &network, const std::vector<PageLevel> &levels,
                                     std::size_t opened);

} // namespace mpc::compiler
