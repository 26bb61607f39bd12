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
  mlir::BlockArgument Argument;
  std::string Name;
  /// The argument, then the new parameter of the first optimizer, of the one that updates that one, ...
  llvm::SmallVector<mlir::Value, 2> Values;
  /// The function result that the last value is: the parameter after the step. None: nothing updates the parameter, or
  /// something that is no optimizer does.
  std::optional<unsigned> Result;

  bool isUpdated() const { return Values.size() > 1; }
};

/// The parameters of \p Function, which is one block, in the order of its arguments.
llvm::SmallVector<ParameterVersions> findParameters(mlir::func::FuncOp Function);

/// Whether \p Op updates a parameter (operand and result 0) and can write its shadow.
bool isOptimizer(mlir::Operation *Op);

/// A cast of a parameter to a low type, at the end of data movement that starts at the parameter.
struct LowUse {
  mlir::Operation *Cast;
  /// The movement in order from the parameter to the cast.
  llvm::SmallVector<mlir::Operation *, 2> Movement;
};

/// The casts of \p Value to f16 or bf16, directly or behind reshapes and transposes; if \p Parts, also those of rows
/// and slices.
llvm::SmallVector<LowUse> findLowUses(mlir::Value Value, bool Parts);

/// Replaces the casts of a parameter by its low copy.
class LowCopies {
public:
  explicit LowCopies(mlir::MLIRContext *Context) : Builder(Context) {}

  /// Makes readers of the cast of \p Use read \p Low instead, behind the same data movement. Erases the cast, and the
  /// movement that nothing else reads.
  void replace(const LowUse &Use, mlir::Value Low);

private:
  mlir::OpBuilder Builder;
  /// Movement of low copies, by what it copies.
  llvm::DenseMap<mlir::Operation *, llvm::SmallDenseMap<mlir::Type, mlir::Value, 2>> Moved;
};

/// The low type of a use.
mlir::Type lowTypeOf(const LowUse &Use);

/// Stores \p Parameter in \p Low. The argument, what optimizers make of it and the result become low. Other uses in f32
/// read it through a cast. The caller gives the function its new type.
void storeLow(mlir::func::FuncOp Function, ParameterVersions &Parameter, mlir::Type Low, LowCopies &Copies);

/// The type that \p Parameter can be stored in without changing what its readers see, once it is rounded. Every use is
/// a cast to that type, or updates the parameter. Null: none.
mlir::Type onlyLowType(const ParameterVersions &Parameter);

} // namespace mpc
