// The user's changes of operation classes, by operation name and by Cell path.
#pragma once

#include "compiler/dialect/dialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <utility>

namespace mpc {

/// Lists of operation names and Cell paths. An operation name is a mnemonic ("softmax", "conv2d") or the name of a
/// family ("conv", "dense", "batch_norm", "max_pool", "avg_pool", "sum", "mean"). Any other entry is a Cell path
/// ("lenet5/fc1") and covers everything inside that Cell.
class PrecisionLists {
public:
  PrecisionLists() = default;

  /// Errors: an entry in two lists; the text names both.
  static llvm::Expected<PrecisionLists> create(mlir::MLIRContext *context, llvm::ArrayRef<std::string> allow,
                                               llvm::ArrayRef<std::string> deny, llvm::ArrayRef<std::string> infer,
                                               llvm::ArrayRef<std::string> clear);

  struct Match {
    AmpClass ampClass = AmpClass::Exempt;
    std::string entry;
    /// "'softmax' (allow)"
    std::string text() const;
  };

  /// The entry that decides \p op: the innermost Cell path, else its name; nullopt if none does.
  std::optional<Match> lookup(mlir::Operation *op) const;

  /// Cell paths that no operation of \p module lies in: misspelt, most likely.
  llvm::SmallVector<std::string> unmatchedPaths(mlir::ModuleOp module) const;

private:
  llvm::SmallVector<std::pair<std::string, AmpClass>> paths;
  llvm::SmallVector<std::pair<std::string, AmpClass>> operations;
};

} // namespace mpc
