// The loop over the columns of a row: whole vectors, then one masked vector.
#pragma once

#include "compiler/codegen/host_function.h"
#include "compiler/codegen/host_schedule.h"

namespace mpc::codegen {

/// The columns of a tile. The masked vector's lanes are known; whether a row has one may depend on the row (the last
/// one may be shorter) and on the tile (only the last of a row has one).
class HostColumns {
public:
  using Body = llvm::function_ref<void(llvm::Value *Column, llvm::Constant *Mask, unsigned Chain)>;

  /// The columns of column tile \p ColumnTile.
  HostColumns(HostFunction &F, const HostSchedule &Schedule, llvm::Value *ColumnTile);

  /// Visits those of row \p Row, whole vectors in `Chains` chains that take turns.
  void visit(llvm::Value *Row, unsigned Chains, Body Visit);
  /// Visits those of the longest row.
  void visitLongest(Body Visit);

private:
  void visitWhole(llvm::Value *End, unsigned Chains, Body Visit);
  /// The masked vector of a row of \p Width, where \p HasTail (null: in every row).
  void visitTail(llvm::Value *HasTail, int64_t TailBegin, int64_t Width, Body Visit);

  HostFunction &F;
  const HostSchedule &Schedule;
  llvm::Value *ColumnTile;
  llvm::Value *Begin;
};

} // namespace mpc::codegen
