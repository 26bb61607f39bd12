// The workspace of a region on the host: partial values of the tiles, then what combinations give to later sweeps.
#pragma once

#include "compiler/codegen/host_schedule.h"

namespace mpc::codegen {

class HostWorkspace {
public:
  /// A value a column, or a single one, that later sweeps load.
  struct Slot {
    size_t offset;
    Extent extent;
  };

  /// The partial values of one accumulator: of All one a tile, of Column a row of `width` a row of tiles. They lie
  /// where those of the sweep before lay.
  struct Partials {
    size_t offset;
    Combine how;
    Axis axis;
  };

  explicit HostWorkspace(const RegionPlan &Plan, const HostSchedule &Schedule);

  llvm::ArrayRef<Partials> partials(const RegionPlan::Step &Step) const {
    return PartialsOf.find({Step.op, Step.index})->second;
  }

  /// What \p Op kept so far, in order; nothing for what a row kept.
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
