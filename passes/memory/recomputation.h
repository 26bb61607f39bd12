// Forward operations that run again where the backward pass reads their results.
//
// This is checkpointing: Griewank and Walther 2000, "Algorithm 799: revolve"; for networks Chen et al. 2016, "Training
// deep nets with sublinear memory cost". Each operation runs again once at most. What a copy reads is either kept or
// computed again. No schedule of revolve's, which would run operations several times, is searched for.
#pragma once

#include "compiler/analysis/block_dependences.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <string>

namespace mpc {

/// The values of a block that are computed again. Each value is computed by a copy of its operation from the
/// operation's operands. Operands that are computed again themselves are taken in their new form. Apply it once.
class Recomputation {
public:
  explicit Recomputation(mlir::Block &body) : body(body) {}

  /// \p v, a result of a forward operation, is computed again wherever the backward pass reads it. \p why is what it is
  /// reported under: a Cell path.
  void add(mlir::Value v, llvm::StringRef why);
  bool contains(mlir::Value v) const { return reasons.contains(v); }

  /// Puts copies of the operations before their first readers in the backward pass, and removes what nothing reads any
  /// more. BlockDependences says which operations may be copied. Where state that an operation reads is updated before
  /// that reader, its results are kept.
  void apply();

  /// What was recomputed under one name.
  struct Summary {
    unsigned operations = 0; ///< operations that run again, without those that move no bytes
    int64_t bytesSaved = 0;  ///< bytes of values that are not kept for the backward pass any more
  };
  const llvm::MapVector<llvm::StringRef, Summary> &getSummaries() const { return summaries; }

private:
  /// What a reader \p before takes for \p v. Copies what is needed for it and may be copied there.
  mlir::Value again(mlir::Value v, mlir::Operation *before, const BlockDependences &dependences);
  void insertCopy(mlir::Operation *op, llvm::StringRef why, mlir::Operation *before);
  /// The result of the copy that computes \p v again; \p v where there is none.
  mlir::Value newForm(mlir::Value v) const;

  mlir::Block &body;
  llvm::DenseMap<mlir::Value, llvm::StringRef> reasons;
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> copies;
  llvm::MapVector<llvm::StringRef, Summary> summaries;
};

} // namespace mpc
