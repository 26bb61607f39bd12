// The workspace of a region on the host. It holds partial values of the tiles, then what combinations give to later
// sweeps.
#pragma once

#include "compiler/codegen/host_schedule.h"

namespace mpc::codegen {

class HostWorkspace {
public:
  /// A value for each column, or a single value, that later sweeps load.
  struct Slot {
    size_t offset;
    Extent extent;
  };

  /// The partial values of one accumulator. Along Axis::All there is one for each tile; along Axis::Column each row of
  /// tiles has `width` of them. They take the place of the partial values of the sweep before.
  struct Partials {
    size_t offset;
    Combine how;
    Axis axis;
  };

  explicit HostWorkspace(const RegionPlan &Plan, const HostSchedule &Schedule);

  llvm::ArrayRef<Partials> partials(const RegionPlan::Step &Step) const {
    return PartialsOf.find({Step.op, Step.index})->second;
  }

  /// The slots of the values that \p Op has kept so far, in order. A value that a row kept has none.
  llvm::ArrayRef<std::optional<Slot>> kept(mlir::Operation *Op) const;
  Slot addKept(mlir::Operation *Op, Extent E);
  void addKeptOfRows(mlir::Operation *Op, size_t Count) { Kept[Op].append(Count, std::nullopt); }

  /// A reduced result that is no output.
  std::optional<Slot> reduced(mlir::Value V) const;
  Slot addReduced(mlir::Value V, Extent E);

  size_t bytes() const { return Bytes; }

private:
  Slot add(Extent E, size_t ElementBytes);

  const HostSchedule &Schedule;
  size_t Bytes = 0;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, llvm::SmallVector<Partials, 2>> PartialsOf;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<std::optional<Slot>, 4>> Kept;
  llvm::DenseMap<mlir::Value, Slot> Reduced;
};

} // namespace mpc::codegen
