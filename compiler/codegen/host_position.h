// A position of the host's loops: a vector of neighbours in one row, all lanes or a part of them.
#pragma once

#include "compiler/codegen/body_emitter.h"
#include "compiler/codegen/fusion_outputs.h"
#include "compiler/codegen/host_function.h"
#include "compiler/codegen/host_workspace.h"

namespace mpc::codegen {

/// What the functions of a region share.
struct HostFusion {
  FusionOp fusion;
  const FusionPlan &plan;
  const FusionOutputs &outputs;
  const HostSchedule &schedule;
  HostWorkspace &workspace;
};

/// Whether \p o may be stored around the caches: no later phase of its row reads it back.
bool canStream(const HostFusion &region, const FusionOutputs::Output &o);

class HostPosition final : public Position {
public:
  /// A position in the phases of sweep \p sweep, or where the sweep before it is combined.
  HostPosition(HostFusion &region, HostFunction &f, unsigned sweep) : region(region), f(f), now{sweep, 0} {}

  /// Moves to row \p row of the loops.
  void setRow(llvm::Value *row);
  /// Moves to the vector that begins at \p column. With a mask, only its lanes take part.
  void setColumn(llvm::Value *columnIndex, llvm::Constant *mask);
  void setPhase(unsigned phase) { now.phase = phase; }
  void setAnchor(Extent e, llvm::Instruction *where) { anchors[static_cast<unsigned>(e)] = where; }
  /// Repeats the values that this sweep reads for each column, because one row of the loops holds several rows of the
  /// region. The copies go to the stack.
  void spreadColumns();

  llvm::Constant *getMask() const { return mask; }
  /// The column at which the vector begins.
  llvm::Value *firstColumn() const { return columnIndex; }
  /// \p value, spread to all lanes.
  llvm::Value *lanes(llvm::Value *value) const { return spread(value, region.schedule.lanes); }
  /// \p count lanes of the vector at \p address, or those of the mask.
  llvm::Value *loadVector(llvm::Type *t, llvm::Value *address) const;
  void storeVector(llvm::Value *value, llvm::Value *address) const;
  /// Stores \p value of output \p o here.
  void store(const FusionOutputs::Output &o, llvm::Value *value) const;
  /// The address of the element of output \p o.
  llvm::Value *address(const FusionOutputs::Output &o) const;
  /// Stores \p value as \p saved, here.
  void store(HostWorkspace::SavedValue saved, llvm::Value *value) const;

  /// Prefetches the elements of \p input for the vector \p rows rows below this one into the second-level cache. There
  /// may be no such row.
  void prefetchBelow(mlir::Value input, int64_t rows = 1) const;
  /// The same for the bytes that lie \p bytes further on.
  void prefetchAhead(mlir::Value input, int64_t bytes) const;
  /// Prefetches half a vector of the row below. After a visit to all columns, the first or the \p second half of that
  /// row is in the cache.
  void prefetchHalfBelow(mlir::Value input, bool second) const;

  llvm::Value *load(mlir::Value input, Extent e) override;
  llvm::Value *loadStored(mlir::Value v, Extent e) override;
  Float loadKept(mlir::Operation *op, unsigned index) override;
  llvm::Instruction *anchor(Extent e) override { return anchors[static_cast<unsigned>(e)]; }
  Unsigned column() override;
  Float atColumn(Unsigned columnIndex, Float there, Float elsewhere) override;
  Long linearIndex() override;
  Float once(mlir::Operation *op, llvm::function_ref<Float()> compute) override;

private:
  /// The numbers of one row that an operation computed in \p phase, on the stack, padded to whole vectors.
  struct RowNumbers {
    llvm::AllocaInst *buffer;
    unsigned phase;
  };

  /// Whether output \p o is stored around the caches here. That needs whole vectors in rows that consist of them, so
  /// that no vector crosses a cache line.
  bool isStreamed(const FusionOutputs::Output &o) const;
  /// The address of this position's element in the tensor at \p base.
  llvm::Value *address(llvm::Type *t, llvm::Value *base, Extent e) const;
  llvm::Value *loadFrom(llvm::Type *t, llvm::Value *base, Extent e) const;
  llvm::Value *spreadFrom(llvm::Type *t, llvm::Value *base);
  /// First, First + 1, ... for the lanes.
  llvm::Value *iota(llvm::Value *first) const;

  HostFusion &region;
  HostFunction &f;
  Availability now;
  llvm::Value *row = nullptr;
  llvm::Value *start = nullptr; ///< index of the row's first element in the whole space
  llvm::Value *columnIndex = nullptr;
  llvm::Constant *mask = nullptr;
  llvm::Instruction *anchors[4] = {};
  llvm::DenseMap<mlir::Value, llvm::Value *> spreadValues;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, llvm::Value *> spreadKept;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, llvm::Value *> keptHere;
  llvm::DenseMap<mlir::Operation *, RowNumbers> rows;
};

} // namespace mpc::codegen
