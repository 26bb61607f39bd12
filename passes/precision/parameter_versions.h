// The parameters of a step and the values that follow them through its optimizers.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace mpc {

/// One state argument of role "parameter" with its name, and its values in the order in which they replace each other.
struct ParameterVersions {
  mlir::BlockArgument argument;
  std::string name;
  /// The argument, then the new parameter of the first optimizer, of the one that updates that one, ...
  llvm::SmallVector<mlir::Value, 2> values;
  /// The function result that the last value is: the parameter after the step. None: nothing updates the parameter, or
  /// something that is no optimizer does.
  std::optional<unsigned> result;

  bool isUpdated() const { return values.size() > 1; }
};

/// The parameters of \p function, which is one block, in the order of its arguments.
llvm::SmallVector<ParameterVersions> findParameters(mlir::func::FuncOp function);

/// Whether \p op updates a parameter (operand and result 0) and can write its low copy.
bool isOptimizer(mlir::Operation *op);

/// A cast of a parameter to a low type, at the end of data movement that starts at the parameter.
struct LowUse {
  mlir::Operation *cast;
  /// The movement in order from the parameter to the cast.
  llvm::SmallVector<mlir::Operation *, 2> movement;
};

/// The casts of \p value to f16 or bf16, directly or behind reshapes and transposes; if \p parts, also those of rows
/// and slices.
llvm::SmallVector<LowUse> findLowUses(mlir::Value value, bool parts);

/// Replaces the casts of a parameter by its low copy.
class LowCopies {
public:
  explicit LowCopies(mlir::MLIRContext *context) : builder(context) {}

  /// Makes readers of the cast of \p use read \p low instead, behind the same data movement. Erases the cast, and the
  /// movement that nothing else reads.
  void replace(const LowUse &use, mlir::Value low);

private:
  mlir::OpBuilder builder;
  /// Movement of low copies, by what it copies.
  llvm::DenseMap<mlir::Operation *, llvm::SmallDenseMap<mlir::Type, mlir::Value, 2>> moved;
};

/// The low type of a use.
mlir::Type lowTypeOf(const LowUse &use);

/// Stores \p parameter in \p low. The argument, what optimizers make of it and the result become low. Other uses in f32
/// read it through a cast. \p result is the function's result that has the parameter after the step, whatever computes
/// it. The caller gives the function its new type.
void storeLow(mlir::func::FuncOp function, ParameterVersions &parameter, std::optional<unsigned> result, mlir::Type low,
              LowCopies &copies);

/// The type that \p parameter can be stored in without changing what its readers see, once it is rounded. Every use is
/// a cast to that type, or updates the parameter. Null: none.
mlir::Type onlyLowType(const ParameterVersions &parameter);

} // namespace mpc
