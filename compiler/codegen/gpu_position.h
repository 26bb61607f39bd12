// The positions of a thread's elements.
#pragma once

#include "compiler/codegen/gpu_function.h"

namespace mpc::codegen {

/// A position of one thread: `lanes` neighbours (0: a scalar), or a value that is the same over a row, a column or the
/// space.
class GpuPosition : public Position {
public:
  GpuPosition(GpuFunction &F, unsigned Lanes) : F(F), Lanes(Lanes) {}

  llvm::Value *load(mlir::Value Input, Extent E) override;
  llvm::Value *loadStored(mlir::Value V, Extent E) override;
  Float loadKept(mlir::Operation *Op, unsigned Index) override;
  llvm::Instruction *anchor(Extent E) override { return E == Extent::Single ? F.entryAnchor() : nullptr; }

  /// Loads the elements of type \p T of the tensor at \p Base, which lies over the space as \p E says.
  llvm::Value *loadFrom(llvm::Value *Base, llvm::Type *T, Extent E);
  void storeTo(llvm::Value *Base, llvm::Value *V, Extent E);
  /// Loads what later positions with these elements use, before anything computes: the loads are under way together.
  void preload(llvm::ArrayRef<mlir::Value> Elements);

  unsigned lanes() const { return Lanes; }

protected:
  /// The index of the first of `lanes` neighbours, of the only element, or (a vector) of each element.
  virtual llvm::Value *indexOf(Extent E) = 0;
  Long wide(llvm::Value *Index);
  /// A column, whatever the type of indices is.
  Unsigned narrow(llvm::Value *Column);
  /// First, First + 1, ... for each lane.
  llvm::Value *eachLane(llvm::Value *First);

  GpuFunction &F;
  unsigned Lanes;
  llvm::DenseMap<mlir::Value, llvm::Value *> Loaded;
};

/// Neighbours in one row. A null row or column: only what needs none is asked for.
class RowPosition final : public GpuPosition {
public:
  RowPosition(GpuFunction &F, llvm::Value *Row, llvm::Value *Column, unsigned Lanes,
              llvm::Instruction *ColumnAnchor = nullptr)
      : GpuPosition(F, Lanes), Row(Row), Column(Column), ColumnAnchor(ColumnAnchor) {}

  llvm::Instruction *anchor(Extent E) override {
    return E == Extent::PerColumn ? ColumnAnchor : GpuPosition::anchor(E);
  }
  Unsigned column() override { return narrow(eachLane(Column)); }
  Long linearIndex() override { return wide(eachLane(indexOf(Extent::Full))); }

private:
  llvm::Value *indexOf(Extent E) override;

  llvm::Value *Row, *Column;
  llvm::Instruction *ColumnAnchor; ///< dominates all positions that have these columns; may be null
};

/// Neighbours in row-major order, which may lie in two rows.
class FlatPosition final : public GpuPosition {
public:
  FlatPosition(GpuFunction &F, llvm::Value *First, unsigned Lanes);

  Unsigned column() override;
  Long linearIndex() override { return wide(eachLane(First)); }

private:
  llvm::Value *indexOf(Extent E) override;

  llvm::Value *First;
  bool InOneRow;
};

} // namespace mpc::codegen
