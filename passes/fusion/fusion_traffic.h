// The memory traffic and the launches of a region, from its plan.
#pragma once

#include "compiler/dialect/fusion_plan.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mpc {

struct FusionTraffic {
  int64_t bytes = 0;     ///< bytes that one run loads from memory and stores
  unsigned launches = 0; ///< sweeps and combinations that do something
  /// An operation of many instructions whose elements are computed in more than one phase; null where there is none.
  mlir::Operation *repeated = nullptr;
};

/// The cost of a region that stores what \p isStored says of the results of its operations.
///
/// Each sweep loads what it reads once: later phases find their row in a cache. A value may be needed after the phase
/// in which it becomes available. It is then computed again from what the later phase loads, or read where it is
/// stored.
FusionTraffic fusionTraffic(const codegen::FusionPlan &plan, llvm::function_ref<bool(mlir::Value)> isStored);

} // namespace mpc
