// Chooses the operations of a block that become one kernel each: docs/fusion.md.
#pragma once

#include "compiler/analysis/block_groups.h"
#include "compiler/dialect/target_model.h"
#include "passes/fusion/region_cost.h"
#include "llvm/ADT/MapVector.h"

#include <string>

namespace mpc {

/// What a device makes of a region; the first and the last are those of its TargetModel.
struct FusionCosts {
  int64_t BytesPerLaunch = 0;
  unsigned MaxOperations = 32;
  LoneRegions AlsoAlone = LoneRegions::None;
};

/// Operations that become one kernel.
struct FusionRegion {
  struct Neighbour {
    mlir::Operation *Op;
    std::string Why;
  };
  unsigned Group;
  llvm::SmallVector<mlir::Operation *> Operations; ///< in program order, without views
  int64_t BytesSaved = 0;                          ///< memory traffic of the operations alone, less the region's
  llvm::SmallVector<Neighbour> LeftOut;            ///< what it takes values from or hands them to, and why not
};

/// Merges, as long as that saves time, the two groups of operations that save most together: one hands values to the
/// other, or both read a value. Two groups may be one where codegen::RegionPlan finds a space for them, no way leads
/// out of them and back, no expensive element is computed twice and the limits of the costs hold.
class FusionGroups {
public:
  FusionGroups(mlir::Block &Body, const FusionCosts &Costs);

  llvm::ArrayRef<FusionRegion> regions() const { return Regions; }
  const BlockGroups &groups() const { return Groups; }
  /// How many pairs of groups were judged: what choosing takes.
  unsigned numTrials() const { return Trials; }

private:
  using Pair = std::pair<unsigned, unsigned>;
  /// What merging two groups saves; an obstacle where they may not be one.
  struct Merge {
    int64_t Saved = 0;
    std::string Obstacle;
  };

  std::string obstacle(mlir::Operation *Op);
  bool isRegionAlone(mlir::Operation *Op) const;
  llvm::SmallVector<unsigned> neighbours(unsigned Group) const;
  void propose(unsigned Group);
  Merge judge(unsigned A, unsigned B) const;
  void mergeBest();
  std::string whyNot(unsigned Group, mlir::Operation *Other) const;
  void describe(unsigned Group);

  FusionCosts Costs;
  BlockGroups Groups;
  /// Why an operation can be in no region; empty where it can.
  llvm::DenseMap<mlir::Operation *, std::string> Obstacles;
  llvm::SmallVector<RegionCost> GroupCosts; ///< by group
  llvm::SmallVector<int64_t> BytesAlone;    ///< of a group's operations, by group
  llvm::MapVector<Pair, Merge> Proposals;
  llvm::SmallVector<FusionRegion> Regions;
  unsigned Trials = 0;
};

} // namespace mpc
