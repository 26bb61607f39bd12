// A position of the host's loops: a vector of neighbours in one row, all lanes or a part of them.
#pragma once

#include "compiler/codegen/body_emitter.h"
#include "compiler/codegen/host_function.h"
#include "compiler/codegen/host_workspace.h"
#include "compiler/codegen/region_outputs.h"

namespace mpc::codegen {

/// What the functions of a region share.
struct HostRegion {
  FusionOp fusion;
  const RegionPlan &plan;
  const RegionOutputs &outputs;
  const HostSchedule &schedule;
  HostWorkspace &workspace;
};

/// Whether \p O may be stored around the caches: no later phase of its row reads it back.
bool canStream(const HostRegion &Region, const RegionOutputs::Output &O);

class HostPosition final : public Position {
public:
  /// A position in the phases of sweep \p Sweep, or where the sweep before it is combined.
  HostPosition(HostRegion &Region, HostFunction &F, unsigned Sweep) : Region(Region), F(F), Now{Sweep, 0} {}

  /// Moves to row \p Row of the loops.
  void setRow(llvm::Value *Row);
  /// Moves to the vector that begins at \p Column. With a mask, only its lanes take part.
  void setColumn(llvm::Value *Column, llvm::Constant *Mask);
  void setPhase(unsigned Phase) { Now.phase = Phase; }
  void setAnchor(Extent E, llvm::Instruction *Where) { Anchors[static_cast<unsigned>(E)] = Where; }
  /// Repeats the values that this sweep reads for each column, because one row of the loops holds several rows of the
  /// region. The copies go to the stack.
  void spreadColumns();

  llvm::Constant *mask() const { return Mask; }
  /// The column at which the vector begins.
  llvm::Value *firstColumn() const { return Column; }
  /// \p Value, spread to all lanes.
  llvm::Value *lanes(llvm::Value *Value) const { return spread(Value, Region.schedule.lanes); }
  /// \p Count lanes of the vector at \p Address, or those of the mask.
  llvm::Value *loadVector(llvm::Type *T, llvm::Value *Address) const;
  void storeVector(llvm::Value *Value, llvm::Value *Address) const;
  /// Stores \p Value of output \p O here.
  void store(const RegionOutputs::Output &O, llvm::Value *Value) const;
  /// The address of the element of output \p O.
  llvm::Value *address(const RegionOutputs::Output &O) const;
  /// Stores \p Value in a slot, here.
  void store(HostWorkspace::Slot Slot, llvm::Value *Value) const;

  /// Prefetches the elements of \p Input for the vector \p Rows rows below this one into the second-level cache. There
  /// may be no such row.
  void prefetchBelow(mlir::Value Input, int64_t Rows = 1) const;
  /// The same for the bytes that lie \p Bytes further on.
  void prefetchAhead(mlir::Value Input, int64_t Bytes) const;
  /// Prefetches half a vector of the row below. After a visit to all columns, the first or the \p Second half of that
  /// row is in the cache.
  void prefetchHalfBelow(mlir::Value Input, bool Second) const;

  llvm::Value *load(mlir::Value Input, Extent E) override;
  llvm::Value *loadStored(mlir::Value V, Extent E) override;
  Float loadKept(mlir::Operation *Op, unsigned Index) override;
  llvm::Instruction *anchor(Extent E) override { return Anchors[static_cast<unsigned>(E)]; }
  Unsigned column() override;
  Float atColumn(Unsigned Column, Float There, Float Elsewhere) override;
  Long linearIndex() override;
  Float once(mlir::Operation *Op, llvm::function_ref<Float()> Compute) override;

private:
  /// The numbers of one row that an operation computed in \p phase, on the stack, padded to whole vectors.
  struct RowNumbers {
    llvm::AllocaInst *buffer;
    unsigned phase;
  };

  /// Whether output \p O is stored around the caches here. That needs whole vectors in rows that consist of them, so
  /// that no vector crosses a cache line.
  bool isStreamed(const RegionOutputs::Output &O) const;
  /// The address of this position's element in the tensor at \p Base.
  llvm::Value *address(llvm::Type *T, llvm::Value *Base, Extent E) const;
  llvm::Value *loadFrom(llvm::Type *T, llvm::Value *Base, Extent E) const;
  llvm::Value *spreadFrom(llvm::Type *T, llvm::Value *Base);
  /// First, First + 1, ... for the lanes.
  llvm::Value *iota(llvm::Value *First) const;

  HostRegion &Region;
  HostFunction &F;
  Availability Now;
  llvm::Value *Row = nullptr;
  llvm::Value *Start = nullptr; ///< index of the row's first element in the whole space
  llvm::Value *Column = nullptr;
  llvm::Constant *Mask = nullptr;
  llvm::Instruction *Anchors[4] = {};
  llvm::DenseMap<mlir::Value, llvm::Value *> SpreadValues;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, llvm::Value *> SpreadKept;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, llvm::Value *> KeptHere;
  llvm::DenseMap<mlir::Operation *, RowNumbers> Rows;
};

} // namespace mpc::codegen
