// The positions of a thread's elements.
#pragma once

#include "compiler/codegen/gpu_function.h"

namespace mpc::codegen {

/// A position of one thread: `lanes` neighbours (0: a scalar), or a value that is the same over a row, a column or the
/// space.
class GpuPosition : public Position {
public:
  GpuPosition(GpuFunction &f, unsigned lanes) : f(f), lanes(lanes) {}

  llvm::Value *load(mlir::Value input, Extent e) override;
  llvm::Value *loadStored(mlir::Value v, Extent e) override;
  Float loadKept(mlir::Operation *op, unsigned index) override;
  llvm::Instruction *anchor(Extent e) override { return e == Extent::Single ? f.entryAnchor() : nullptr; }

  /// Loads the elements of type \p t of the tensor at \p base, which lies over the space as \p e says.
  llvm::Value *loadFrom(llvm::Value *base, llvm::Type *t, Extent e);
  void storeTo(llvm::Value *base, llvm::Value *v, Extent e);
  /// Loads what later positions with these values use, before anything computes: the loads are under way together.
  void preload(llvm::ArrayRef<mlir::Value> values, Extent e = Extent::Full);
  /// What preload loaded, or what take was given, for \p value.
  llvm::Value *preloaded(mlir::Value value) const { return loaded.lookup(value); }
  /// Says that \p known are the elements of \p value at this position.
  void take(mlir::Value value, llvm::Value *known) { loaded[value] = known; }

  unsigned getLanes() const { return lanes; }

protected:
  /// The index of the first of `lanes` neighbours, of the only element, or (a vector) of each element.
  virtual llvm::Value *indexOf(Extent e) = 0;
  Long wide(llvm::Value *index);
  /// Whether vectors of a tensor that lies over the space as \p e says are aligned at this position.
  virtual bool isAligned(Extent e) const { return true; }
  /// A column, whatever the type of indices is.
  Unsigned narrow(llvm::Value *columnIndex);
  /// First, First + 1, ... for each lane.
  llvm::Value *eachLane(llvm::Value *first);

  GpuFunction &f;
  unsigned lanes;
  llvm::DenseMap<mlir::Value, llvm::Value *> loaded;
};

/// Neighbours in one row. A null row or column: only what needs none is asked for.
class RowPosition final : public GpuPosition {
public:
  /// Instructions that dominate all positions that share a row, or columns. Null: the position shares none.
  struct Anchors {
    llvm::Instruction *row, *column;
  };

  /// \p shifted: the vector is aligned in the space, but begins at any column.
  RowPosition(GpuFunction &f, llvm::Value *row, llvm::Value *columnIndex, unsigned lanes,
              Anchors anchors = {nullptr, nullptr}, bool shifted = false)
      : GpuPosition(f, lanes), row(row), columnIndex(columnIndex), anchors(anchors), shifted(shifted) {}

  void setAnchors(const Anchors &others) { anchors = others; }
  llvm::Instruction *anchor(Extent e) override {
    return e == Extent::PerColumn ? anchors.column : e == Extent::PerRow ? anchors.row : GpuPosition::anchor(e);
  }
  /// Says that all columns of the position are below \p below.
  void setBound(int64_t below) { bound = below; }
  Unsigned column() override;
  Float atColumn(Unsigned wanted, Float there, Float elsewhere) override;
  Long linearIndex() override { return wide(eachLane(indexOf(Extent::Full))); }

private:
  llvm::Value *indexOf(Extent e) override;
  bool isAligned(Extent e) const override { return !shifted || e == Extent::Full; }

  llvm::Value *row, *columnIndex;
  Anchors anchors;
  bool shifted;
  std::optional<int64_t> bound;
};

/// Neighbours in row-major order, which may lie in two rows.
class FlatPosition final : public GpuPosition {
public:
  FlatPosition(GpuFunction &f, llvm::Value *first, unsigned lanes);

  Unsigned column() override;
  Long linearIndex() override { return wide(eachLane(first)); }

private:
  llvm::Value *indexOf(Extent e) override;

  llvm::Value *first;
  bool inOneRow;
};

} // namespace mpc::codegen
