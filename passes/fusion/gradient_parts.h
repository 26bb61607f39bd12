// Splits checks and norms of all gradients into parts of single gradients.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// Splits mpc.all_finite and mpc.global_norm while regions are chosen. Each gradient that a region may produce has an
/// operation of its own then (mpc.check_finite, mpc.sum_of_squares), which can join that region. Those that no region
/// took go back afterwards, so that the gradients of libraries are read in one pass over all of them.
class GradientParts {
public:
  /// Splits the checks and norms of \p body.
  explicit GradientParts(mlir::Block &body);

  /// Undoes the split for operations that are in no region by now. Operands are in their old order, except that sums of
  /// squares come last.
  void joinLeftOver();

private:
  struct SplitNorm {
    GlobalNormOp norm;
    /// The positions, before the split, of the gradients whose sums are the last operands now.
    llvm::SmallVector<unsigned> places;
  };
  void split(AllFiniteOp check);
  void split(GlobalNormOp norm);
  void join(AllFiniteOp check);
  void join(const SplitNorm &split);

  llvm::SmallVector<AllFiniteOp> checks;
  llvm::SmallVector<SplitNorm> norms;
};

} // namespace mpc
