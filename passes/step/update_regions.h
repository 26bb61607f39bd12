// Groups the state updates of a step by what decides whether they happen.
#pragma once

#include "passes/step/step_flow.h"
#include "llvm/ADT/SetVector.h"

namespace mpc {

/// What decides whether state is updated: all or any of the finite flags of some requests. Under accumulation it also
/// matters whether the micro-step is the last one.
struct UpdateKey {
  RequestSet Requests;
  bool Any = false;  ///< any of all requests instead of all of `Requests`
  bool Last = false; ///< acts on accumulated gradients
  bool operator==(const UpdateKey &Other) const {
    return Any == Other.Any && Last == Other.Last && Requests == Other.Requests;
  }
};

/// Updates of one key that can become one guarded update: none of them reads what follows from another one through an
/// operation outside.
struct UpdateRegion {
  UpdateKey Key;
  llvm::SetVector<mlir::Operation *> Updates;
};

/// Groups the top-level state updates of \p Body. A region comes after those that it reads from.
///
/// An update may precede a request that decides it. It joins no region then if anything but the function's return reads
/// it. Its final value is chosen at the end of the step.
class UpdateRegions {
public:
  UpdateRegions(mlir::Block &Body, const StepFlow &Flow, llvm::function_ref<UpdateKey(mlir::Operation *)> KeyOf);

  llvm::ArrayRef<UpdateRegion> regions() const { return Regions; }
  bool contains(mlir::Operation *Op) const { return RegionOf.contains(Op); }

private:
  using Mask = uint64_t;
  static constexpr unsigned MaxRegions = 64;

  void add(mlir::Operation *Update, const UpdateKey &Key);
  bool canWait(mlir::Operation *Update) const;
  /// The requests that decide \p Key are behind the operations looked at so far.
  bool isDecided(const UpdateKey &Key, unsigned RequestsSeen) const;
  /// The regions that \p Op reads from, directly or through operations outside regions. \p Except does not count.
  Mask reads(mlir::Operation *Op, unsigned Except = MaxRegions) const;
  /// \p Regions and the regions that they read from.
  Mask closure(Mask Regions) const;
  void sortRegions();

  const StepFlow &Flow;
  llvm::SmallVector<UpdateRegion> Regions;
  llvm::SmallVector<Mask> Needs; ///< the regions that each region reads from
  llvm::DenseMap<mlir::Operation *, unsigned> RegionOf;
  llvm::DenseMap<mlir::Operation *, Mask> NeedsOf; ///< the regions that an operation outside regions reads from
};

} // namespace mpc
