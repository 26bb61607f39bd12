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
  /// In the phases of sweep \p Sweep, or where the sweep before it is combined.
  HostPosition(HostRegion &Region, HostFunction &F, unsigned Sweep) : Region(Region), F(F), Now{Sweep, 0} {}

  /// Row \p Row of the loops.
  void setRow(llvm::Value *Row);
  /// The vector that begins at \p Column; with a mask, those lanes of it.
  void setColumn(llvm::Value *Column, llvm::Constant *Mask);
  void setPhase(unsigned Phase) { Now.phase = Phase; }
  void setAnchor(Extent E, llvm::Instruction *Where) { Anchors[static_cast<unsigned>(E)] = Where; }
  /// Lays what this sweep reads a column as often as the loops' rows hold the region's. The copies go to the stack.
  void spreadColumns();

  llvm::Constant *mask() const { return Mask; }
  /// Where the vector begins.
  llvm::Value *firstColumn() const { return Column; }
  /// \p Value, of all lanes.
  llvm::Value *lanes(llvm::Value *Value) const { return spread(Value, Region.schedule.lanes); }
  /// \p Count lanes of the vector at \p Address, or those of the mask.
  llvm::Value *loadVector(llvm::Type *T, llvm::Value *Address) const;
  void storeVector(llvm::Value *Value, llvm::Value *Address) const;
  /// Stores \p Value of output \p O here.
  void store(const RegionOutputs::Output &O, llvm::Value *Value) const;
  /// Where the element of output \p O is.
  llvm::Value *address(const RegionOutputs::Output &O) const;
  /// Stores \p Value in a slot, here.
  void store(HostWorkspace::Slot Slot, llvm::Value *Value) const;

  /// Brings what the vector \p Rows below this one has of \p Input into the second-level cache. There may be no such
  /// row.
  void prefetchBelow(mlir::Value Input, int64_t Rows = 1) const;
  /// The same, for what lies \p Bytes further on.
  void prefetchAhead(mlir::Value Input, int64_t Bytes) const;
  /// Of the row below half as much as this vector, so that a visit to all columns brings the row's first or \p Second
  /// half.
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

  /// Whether output \p O is stored around the caches: whole vectors, where rows are made of them, so that they cross no
  /// cache lines.
  bool isStreamed(const RegionOutputs::Output &O) const;
  /// Where an element lies of a tensor at \p Base.
  llvm::Value *address(llvm::Type *T, llvm::Value *Base, Extent E) const;
  llvm::Value *loadFrom(llvm::Type *T, llvm::Value *Base, Extent E) const;
  llvm::Value *spreadFrom(llvm::Type *T, llvm::Value *Base);
  /// First, First + 1, ... of the lanes.
  llvm::Value *iota(llvm::Value *First) const;

  HostRegion &Region;
  HostFunction &F;
  Availability Now;
  llvm::Value *Row = nullptr;
  llvm::Value *Start = nullptr; ///< of the row, in the whole space
  llvm::Value *Column = nullptr;
  llvm::Constant *Mask = nullptr;
  llvm::Instruction *Anchors[4] = {};
  llvm::DenseMap<mlir::Value, llvm::Value *> SpreadValues;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, llvm::Value *> SpreadKept;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, llvm::Value *> KeptHere;
  llvm::DenseMap<mlir::Operation *, RowNumbers> Rows;
};

} // namespace mpc::codegen
