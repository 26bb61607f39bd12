// The values that could be computed again to keep less, cheapest first. A memory budget is met with them.
//
// The choice is greedy, as for a knapsack. So the work may be more than the least that meets a budget. Jain et al.
// 2020, "Checkmate: breaking the memory wall with optimal tensor rematerialization", find the least by integer
// programming.
#pragma once

#include "passes/memory/recomputation.h"

#include <string>

namespace mpc {

/// Values of operations without matrix work, in the order in which they are given up. The least work for each byte that
/// need not be kept comes first. A candidate is computed from values that are kept, so two of them never wait for each
/// other.
class CheapCandidates {
public:
  explicit CheapCandidates(mlir::Block &body);

  unsigned size() const { return order.size(); }
  /// Adds the first \p count candidates.
  void add(unsigned count, Recomputation &chosen) const;

private:
  struct Candidate {
    mlir::Value saved;
    llvm::SmallVector<mlir::Value> chain; ///< what is computed again for it, itself included
  };
  std::vector<Candidate> order;
};

/// Cells with matrix work, in the same order: each computes again everything that it does not hand on. No Cell is
/// inside another one.
class CellCandidates {
public:
  explicit CellCandidates(mlir::Block &body);

  unsigned size() const { return paths.size(); }
  void add(mlir::Block &body, unsigned count, Recomputation &chosen) const;

private:
  llvm::SmallVector<llvm::StringRef> paths;
};

} // namespace mpc
