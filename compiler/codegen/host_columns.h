// The loop over the columns of a row: whole vectors, then one masked vector.
#pragma once

#include "compiler/codegen/host_function.h"
#include "compiler/codegen/host_schedule.h"

namespace mpc::codegen {

/// The columns of a tile. The lanes of the masked vector are known when code is emitted. Whether a row has such a
/// vector may depend on the row, since the last one may be shorter. It may also depend on the tile, since only the last
/// tile of a row has one.
class HostColumns {
public:
  using Body = llvm::function_ref<void(llvm::Value *Column, llvm::Constant *Mask, unsigned Chain)>;

  /// The columns of column tile \p ColumnTile.
  HostColumns(HostFunction &F, const HostSchedule &Schedule, llvm::Value *ColumnTile);

  /// Visits the columns of row \p Row. Whole vectors are dealt to `Chains` chains in turn.
  void visit(llvm::Value *Row, unsigned Chains, Body Visit);
  /// Visits the columns of the longest row.
  void visitLongest(Body Visit);

private:
  void visitWhole(llvm::Value *End, unsigned Chains, Body Visit);
  /// Visits the masked vector of a row of \p Width columns where \p HasTail holds. Null: every row has one.
  void visitTail(llvm::Value *HasTail, int64_t TailBegin, int64_t Width, Body Visit);

  HostFunction &F;
  const HostSchedule &Schedule;
  llvm::Value *ColumnTile;
  llvm::Value *Begin;
};

} // namespace mpc::codegen
