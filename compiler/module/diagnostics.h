// MLIR diagnostics as absl::Status.
#pragma once

#include "absl/status/status.h"
#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace mpc::compiler {

/// Collects the diagnostics of a context while it lives.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);

  /// INVALID_ARGUMENT with every collected error (notes indented), or \p fallback if there was none.
  absl::Status status(const char *fallback) const;
  /// Remarks and warnings, one a line.
  const std::vector<std::string> &getRemarks() const { return remarks; }

private:
  std::vector<std::string> errors;
  std::vector<std::string> remarks;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mpc::compiler
