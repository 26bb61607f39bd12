// Groups the state updates of a step by what decides whether they happen.
#pragma once

#include "passes/step/step_flow.h"
#include "llvm/ADT/SetVector.h"

namespace mpc {

/// What decides whether state is updated: all or any of the finite flags of some requests. Under accumulation it also
/// matters whether the micro-step is the last one.
struct UpdateKey {
  RequestSet requests;
  bool any = false;  ///< any of all requests instead of all of `requests`
  bool last = false; ///< acts on accumulated gradients
  bool operator==(const UpdateKey &other) const {
    return any == other.any && last == other.last && requests == other.requests;
  }
};

/// Updates of one key that can become one guarded update: none of them reads what follows from another one through an
/// operation outside.
struct UpdateGroup {
  UpdateKey key;
  llvm::SetVector<mlir::Operation *> updates;
};

/// Groups the top-level state updates of \p body. A region comes after those that it reads from.
///
/// An update may precede a request that decides it. It joins no region then if anything but the function's return reads
/// it. Its final value is chosen at the end of the step.
class UpdateGroups {
public:
  UpdateGroups(mlir::Block &body, const StepFlow &flow, llvm::function_ref<UpdateKey(mlir::Operation *)> keyOf);

  llvm::ArrayRef<UpdateGroup> getRegions() const { return regions; }
  bool contains(mlir::Operation *op) const { return regionOf.contains(op); }

private:
  using Mask = uint64_t;
  static constexpr unsigned maxRegions = 64;

  void add(mlir::Operation *update, const UpdateKey &key);
  bool canWait(mlir::Operation *update) const;
  /// The requests that decide \p key are behind the operations looked at so far.
  bool isDecided(const UpdateKey &key, unsigned requestsSeen) const;
  /// The regions that \p op reads from, directly or through operations outside regions. \p except does not count.
  Mask reads(mlir::Operation *op, unsigned except = maxRegions) const;
  /// \p regions and the regions that they read from.
  Mask closure(Mask regions) const;
  void sortRegions();

  const StepFlow &flow;
  llvm::SmallVector<UpdateGroup> regions;
  llvm::SmallVector<Mask> needs; ///< the regions that each region reads from
  llvm::DenseMap<mlir::Operation *, unsigned> regionOf;
  llvm::DenseMap<mlir::Operation *, Mask> needsOf; ///< the regions that an operation outside regions reads from
};

} // namespace mpc
