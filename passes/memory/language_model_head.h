// The head of a classifier over many classes: a product, its cross-entropy and the operations of their gradients.
#pragma once

#include "compiler/dialect/dialect.h"
#include "llvm/Support/Error.h"

namespace mpc {

/// All operations that read or write the logits [N, V] and their gradient. Since no other operation does, rows of both
/// can be made, used and given up together.
struct LanguageModelHead {
  MatmulOp product; ///< makes the logits: rows of `a` times `b`, maybe with a bias
  SoftmaxCrossEntropyOp loss;
  SoftmaxCrossEntropyGradOp gradient;
  llvm::SmallVector<CastOp> logitCasts;    ///< in program order
  llvm::SmallVector<CastOp> gradientCasts; ///< in program order
  llvm::SmallVector<MatmulOp> rowProducts; ///< rows of the logits' gradient times a matrix: rows of their results
  /// Products and sums over the rows of the logits' gradient: the gradients of the weight and the bias.
  llvm::SmallVector<mlir::Operation *> sums;
  /// The last operation in program order that the head takes a value from, at least the product: chunks come behind it.
  mlir::Operation *last = nullptr;
  /// Operations up to `last` that depend on the head: they have to come behind the chunks.
  llvm::SmallVector<mlir::Operation *> dependent;

  int64_t rows() const;
  /// The Cell path where the head was traced; may be empty.
  llvm::StringRef path() const;

  /// The head around \p loss, without `last` and `dependent`. Errors: which other operation has a part in it.
  static llvm::Expected<LanguageModelHead> find(SoftmaxCrossEntropyOp loss);
  /// The head around \p loss. Errors: why its rows cannot be computed apart from each other.
  static llvm::Expected<LanguageModelHead> create(SoftmaxCrossEntropyOp loss);
};

/// The value that \p v is a cast of, or \p v itself.
mlir::Value behindCasts(mlir::Value v);

} // namespace mpc
