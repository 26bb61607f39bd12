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
  using Body = llvm::function_ref<void(llvm::Value *column, llvm::Constant *mask, unsigned chain)>;

  /// The columns of column tile \p columnTile.
  HostColumns(HostFunction &f, const HostSchedule &schedule, llvm::Value *columnTile);

  /// Visits the columns of row \p row. Whole vectors are dealt to `chains` chains in turn.
  void visit(llvm::Value *row, unsigned chains, Body visit);
  /// Visits the columns of the longest row.
  void visitLongest(Body visit);

private:
  void visitWhole(llvm::Value *end, unsigned chains, Body visit);
  /// Visits the masked vector of a row of \p width columns where \p hasTail holds. Null: every row has one.
  void visitTail(llvm::Value *hasTail, int64_t tailBegin, int64_t width, Body visit);

  HostFunction &f;
  const HostSchedule &schedule;
  llvm::Value *columnTile;
  llvm::Value *begin;
};

} // namespace mpc::codegen
