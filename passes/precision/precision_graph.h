// The minimum cut over the slots of a module.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/precision/op_precision.h"
#include "passes/precision/stored_assignment.h"

#include <map>
#include <string>
#include <vector>

namespace mpc {

/// Decides every slot of \p open that nothing has decided yet, so that casts cost least. The cost is their elements at
/// O1. Where some slot is at level auto, it is their seconds by \p costs, against what low slots save. Decided
/// operations, function inputs and outputs and operations outside every network are fixed. Returns the cost of the
/// casts. Errors: costs that add up to more than a cut takes (PrecisionCut::costLimit), with the rates they follow
/// from.
llvm::Expected<std::int64_t> solveByCut(mlir::ModuleOp module, const DecidedOperations &decided, OpenOperations &open,
                                        const CostModel &costs);

/// What rounding costs: by the name of a slot, the square of a relative error where that slot alone is low.
using SlotErrors = std::map<std::string, double>;

/// Two errors of the same slots, such as those of the gradient and of the loss.
struct FrontierErrors {
  SlotErrors weighed; ///< makes the hull
  SlotErrors other;   ///< is only added up for what the hull has
};

/// An assignment of every open slot, on the lower hull of time and error.
struct FrontierAssignment {
  StoredAssignment slots;
  double seconds = 0;    ///< time of casts, and what f32 slots take longer; 0 is the fastest that could be
  double error = 0;      ///< the square of the error that is weighed, as \c SlotErrors add up
  double otherError = 0; ///< the square of the other one
};

/// The open slots of a module, and the hull of their assignments. See docs/amp.md, "The frontier".
struct AssignmentFrontier {
  std::vector<std::string> open;               ///< slots that no rule decides, in program order
  std::vector<FrontierAssignment> assignments; ///< the fastest first; empty without errors of slots
};

/// The frontier over the slots of \p open that nothing has decided yet. \p names names them. A slot without an entry in
/// \p errors costs no error. Both errors add up alike. Where a data movement is low, what it reads is rounded, and so
/// is what it writes. So the slots that write or read one such value share its error, and each of the others has what
/// is left of its own. Errors: a slot of another level than auto, whose costs are no seconds; costs that a cut does not
/// take.
llvm::Expected<AssignmentFrontier> findFrontier(mlir::ModuleOp module, const DecidedOperations &decided,
                                                OpenOperations &open, const CostModel &costs,
                                                const AssignmentNames &names, const FrontierErrors &errors);

} // namespace mpc
