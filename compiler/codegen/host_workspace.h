// The workspace of a region on the host. It holds partial values of the tiles, then what combinations give to later
// sweeps.
#pragma once

#include "compiler/codegen/host_schedule.h"

namespace mpc::codegen {

class HostWorkspace {
public:
  /// A value for each column, or a single value, that later sweeps load.
  struct SavedValue {
    size_t offset;
    Extent extent;
  };

  /// The partial values of one accumulator. Along Axis::All there is one for each tile; along Axis::Column each row of
  /// tiles has `width` of them. The partial values of all sweeps share the same bytes, one sweep after the other.
  struct Partials {
    size_t offset;
    Combine how;
    Axis axis;
  };

  explicit HostWorkspace(const FusionPlan &plan, const HostSchedule &schedule);

  llvm::ArrayRef<Partials> partials(const FusionPlan::Step &step) const {
    return partialsOf.find({step.op, step.index})->second;
  }

  /// What \p op has saved so far, in order. A value that a row kept is not saved.
  llvm::ArrayRef<std::optional<SavedValue>> kept(mlir::Operation *op) const;
  /// Allocates memory for the next value (f32) that \p op keeps; PerColumn: one for each column.
  SavedValue addKept(mlir::Operation *op, Extent e);
  /// Counts \p count values that \p op keeps for a row. They take no memory.
  void addKeptOfRows(mlir::Operation *op, size_t count) { keptValues[op].append(count, std::nullopt); }

  /// The saved of \p v, a reduced result that is no output; none where it was not added.
  std::optional<SavedValue> reduced(mlir::Value v) const;
  /// Allocates memory for the reduced result \p v in its storage type.
  SavedValue addReduced(mlir::Value v, Extent e);

  size_t getBytes() const { return bytes; }

private:
  SavedValue add(Extent e, size_t elementBytes);

  const HostSchedule &schedule;
  size_t bytes = 0;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, llvm::SmallVector<Partials, 2>> partialsOf;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<std::optional<SavedValue>, 4>> keptValues;
  llvm::DenseMap<mlir::Value, SavedValue> reducedValues;
};

} // namespace mpc::codegen
