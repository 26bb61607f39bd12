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
  explicit DiagnosticCollector(mlir::MLIRContext *Context);

  /// INVALID_ARGUMENT with every collected error (notes indented), or \p Fallback if there was none.
  absl::Status status(const char *Fallback) const;
  /// Remarks and warnings, one a line.
  const std::vector<std::string> &remarks() const { return Remarks; }

private:
  std::vector<std::string> Errors;
  std::vector<std::string> Remarks;
  mlir::ScopedDiagnosticHandler Handler;
};

} // namespace mpc::compiler
