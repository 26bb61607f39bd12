// The head of a classifier over many classes: a product, its cross-entropy and the operations of their gradients.
#pragma once

#include "compiler/dialect/dialect.h"
#include "llvm/Support/Error.h"

namespace mpc {

/// All operations that read or write the logits [N, V] and their gradient. Since no other operation does, rows of both
/// can be made, used and given up together.
struct LanguageModelHead {
  MatmulOp Product; ///< makes the logits: rows of `a` times `b`, maybe with a bias
  SoftmaxCrossEntropyOp Loss;
  SoftmaxCrossEntropyGradOp Gradient;
  llvm::SmallVector<CastOp> LogitCasts;    ///< in program order
  llvm::SmallVector<CastOp> GradientCasts; ///< in program order
  llvm::SmallVector<MatmulOp> RowProducts; ///< rows of the logits' gradient times a matrix: rows of their results
  /// Products and sums over the rows of the logits' gradient: the gradients of the weight and the bias.
  llvm::SmallVector<mlir::Operation *> Sums;
  /// The last operation in program order that the head takes a value from, at least the product: chunks come behind it.
  mlir::Operation *Last = nullptr;
  /// Operations up to `Last` that depend on the head: they have to come behind the chunks.
  llvm::SmallVector<mlir::Operation *> Dependent;

  int64_t rows() const;
  /// The Cell path where the head was traced; may be empty.
  llvm::StringRef path() const;

  /// The head around \p Loss. Errors: why its rows cannot be computed apart from each other.
  static llvm::Expected<LanguageModelHead> of(SoftmaxCrossEntropyOp Loss);
};

/// The value that \p V is a cast of, or \p V itself.
mlir::Value behindCasts(mlir::Value V);

} // namespace mpc
