// Chooses the operations of a block that become one kernel each: docs/fusion.md.
#pragma once

#include "compiler/analysis/block_groups.h"
#include "compiler/dialect/target_model.h"
#include "passes/fusion/region_cost.h"
#include "llvm/ADT/MapVector.h"

#include <string>

namespace mpc {

/// The costs and limits of regions on a device. BytesPerLaunch and AlsoAlone come from its TargetModel.
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
  llvm::SmallVector<Neighbour> LeftOut;            ///< neighbours that are not in it, and why
};

/// Merges two groups of operations at a time, as long as that saves time. It takes the pair that saves most among
/// neighbours: one group hands values to the other, or both read a value. Two groups may be merged if
/// codegen::RegionPlan finds a space for them and no path leads out of them and back. No expensive element may be
/// computed twice, and the limits of the costs must hold.
class FusionGroups {
public:
  FusionGroups(mlir::Block &Body, const FusionCosts &Costs);

  llvm::ArrayRef<FusionRegion> regions() const { return Regions; }
  const BlockGroups &groups() const { return Groups; }
  /// How many pairs of groups were judged, as a measure of the pass's work.
  unsigned numTrials() const { return Trials; }

private:
  using Pair = std::pair<unsigned, unsigned>;
  /// What merging two groups saves, or the obstacle where they may not be merged.
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
  llvm::SmallVector<RegionCost> GroupCosts; ///< cost of each group as a region
  llvm::SmallVector<int64_t> BytesAlone;    ///< bytes that a group's operations move alone, by group
  llvm::MapVector<Pair, Merge> Proposals;
  llvm::SmallVector<FusionRegion> Regions;
  unsigned Trials = 0;
};

} // namespace mpc
