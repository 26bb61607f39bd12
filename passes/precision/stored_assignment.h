// The precision assignment as plain names, kept between the Programs of a Model and in checkpoints.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <string>

namespace mpc {

/// "<Cell path>#<operation>.<ordinal>" -> "f16", "bf16" or "f32". A norm has two slots, with ".x" and ".y" behind the
/// ordinal. Names do not depend on shapes, and the training and the inference form of an operation share one.
using StoredAssignment = std::map<std::string, std::string>;

/// The module attribute `mpc.assignment`; empty where there is none.
StoredAssignment readAssignment(mlir::ModuleOp module);

/// Replaces the module attribute.
void writeAssignment(mlir::ModuleOp module, const StoredAssignment &assignment);

/// The names of operations: those of one kind in one Cell are counted in program order.
class AssignmentNames {
public:
  explicit AssignmentNames(mlir::ModuleOp module);

  /// "lenet5/conv1#conv2d.0"; empty for an operation that AMP never assigns.
  std::string lookup(mlir::Operation *op) const;

  /// The slot that the cut decides: that of a norm is its y.
  std::string slotOf(mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::Operation *, std::string> names;
};

} // namespace mpc
