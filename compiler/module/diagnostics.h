// MLIR diagnostics as absl::Status.
#pragma once

#include "absl/status/status.h"
#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <string>
#include <vector>

namespace mpc::compiler {

/// Collects the diagnostics of a context while it lives.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);

  /// INVALID_ARGUMENT with every collected error (notes indented), or \p fallback if there was none.
  absl::Status status(const char *fallback) const;
  /// The first operand whose type an operation's declaration does not take, of the errors that were collected.
  std::optional<unsigned> getRefusedOperand() const { return refusedOperand; }
  /// Remarks and warnings, one a line.
  const std::vector<std::string> &getRemarks() const { return remarks; }

private:
  std::vector<std::string> errors;
  std::vector<std::string> remarks;
  std::optional<unsigned> refusedOperand;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace mpc::compiler
