// Chooses the operations of a block that become one kernel each: docs/fusion.md.
#pragma once

#include "compiler/analysis/block_groups.h"
#include "compiler/dialect/target_model.h"
#include "passes/fusion/fusion_body.h"
#include "passes/fusion/fusion_traffic.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <queue>
#include <string>

namespace mpc {

/// The costs and limits of regions on a device. bytesPerLaunch and alsoAlone come from its TargetModel.
struct FusionCosts {
  int64_t bytesPerLaunch = 0;
  unsigned maxOperations = 32;
  unsigned maxTensors = 256; ///< inputs and outputs of a region
  LoneFusions alsoAlone = LoneFusions::None;
  unsigned maxSiblings = 8; ///< readers of one tensor beside an operation that are judged with it
};

using OperationSet = llvm::SmallSetVector<mlir::Operation *, 8>;

/// Operations that become one kernel.
struct FusionGroup {
  struct Neighbour {
    mlir::Operation *op;
    std::string why;
  };
  unsigned group;
  llvm::SmallVector<mlir::Operation *> operations; ///< in program order, without views
  int64_t bytesSaved = 0;                          ///< memory traffic of the operations alone, less the region's
  llvm::SmallVector<Neighbour> leftOut;            ///< neighbours that are not in it, and why
};

/// Merges two groups of operations at a time, as long as that saves time. It takes the pair that saves most among
/// neighbours: one group hands values to the other, or both read a value. Two groups may be merged if
/// codegen::FusionPlan finds a space for them and no path leads out of them and back. No expensive element may be
/// computed twice, and the limits of the costs must hold.
class FusionGroups {
public:
  FusionGroups(mlir::Block &body, const FusionCosts &costs);

  llvm::ArrayRef<FusionGroup> getRegions() const { return regions; }
  const BlockGroups &getGroups() const { return groups; }
  /// How many pairs of groups were judged, as a measure of the pass's work.
  unsigned numTrials() const { return trials; }
  /// How many proposals were taken up or put away, as a measure of the choice among them.
  unsigned numChoices() const { return choices; }

private:
  using Pair = std::pair<unsigned, unsigned>;
  /// What merging two groups saves, or the obstacle where they may not be merged.
  struct Merge {
    int64_t saved = 0;
    std::string obstacle;
    unsigned trial = 0; ///< how many pairs were judged before
  };
  struct Candidate {
    int64_t saved;
    unsigned trial;
    Pair groups;
    bool operator<(const Candidate &other) const {
      return saved != other.saved ? saved < other.saved : trial > other.trial;
    }
  };

  llvm::Expected<codegen::FusionPlan> planOf(const FusionBody &body) const;
  std::string obstacle(mlir::Operation *op);
  bool isFusible(mlir::Operation *op) const;
  bool isRegionAlone(mlir::Operation *op) const;
  llvm::ArrayRef<mlir::Operation *> readersOfAll(mlir::Value source);
  OperationSet siblings(llvm::ArrayRef<mlir::Operation *> members);
  llvm::SmallVector<unsigned> neighbours(unsigned group);
  void propose(unsigned group);
  bool isWhole(mlir::Value v, mlir::Operation *op);
  void forgetProposals(unsigned group);
  Merge judge(unsigned a, unsigned b);
  bool isReadBackward(mlir::Value v);
  void mergeBest();
  std::string whyNot(unsigned group, mlir::Operation *other) const;
  void describe(unsigned group);

  FusionCosts costs;
  BlockGroups groups;
  /// Why an operation can be in no region; empty where it can.
  llvm::DenseMap<mlir::Operation *, std::string> obstacles;
  /// The operations in groups that read a whole tensor; of more than maxSiblings in program order.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Operation *>> wholeReaders;
  llvm::SmallVector<FusionTraffic> groupCosts;        ///< cost of each group as a region
  llvm::SmallVector<int64_t> bytesAlone;              ///< bytes that a group's operations move alone, by group
  llvm::DenseMap<mlir::Operation *, int64_t> largest; ///< elements of the largest operand or result, where asked for
  llvm::DenseMap<mlir::Value, bool> readBackward;     ///< by value, where asked for: a value may have many readers
  llvm::DenseMap<Pair, Merge> proposals;
  llvm::DenseMap<unsigned, llvm::SmallVector<unsigned>> partners; ///< groups that a group has had a proposal with
  /// What saves time, the most first, of equals the oldest. Entries whose proposal is gone are passed over.
  std::priority_queue<Candidate> candidates;
  llvm::SmallVector<FusionGroup> regions;
  unsigned trials = 0, choices = 0;
};

} // namespace mpc
