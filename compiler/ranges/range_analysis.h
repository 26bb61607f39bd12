// Ranges of every value of a function, and which of its low tensors can overflow or vanish.
#pragma once

#include "compiler/dialect/ranges/range.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <vector>

namespace mpc::ranges {

/// What is taken for granted of the arguments of a function.
struct Assumptions {
  llvm::StringMap<Range> state;                 ///< by name; state that is left out is unbounded
  llvm::DenseMap<mlir::Value, Range> arguments; ///< by argument, whatever their names say
  std::optional<Range> inputs;                  ///< every floating input; none: unbounded, expected to be about 1
  Range lossScale;                              ///< the scale of every scaler
};

enum class Verdict { Cannot, May, Will };

/// A tensor of a 16-bit type that an operation writes.
struct LowTensor {
  mlir::Value value;
  Range exact; ///< before it is rounded
  /// Whether an element becomes infinite or NaN though all that the operation reads is finite.
  Verdict overflow;
  /// Cannot: no element that is not zero becomes zero. Will: each does.
  Verdict underflow;
};

/// Bounds hold for a step in which nothing has overflowed before: an operation reads finite values. So the first value
/// of a step that is not finite is never of a tensor that cannot overflow. Where operands are finite f16, their sizes
/// are at most 65504, whatever was computed before them.
class RangeAnalysis {
public:
  /// \p function has a body of one block, without calls and requests for gradients. What it calls is unbounded.
  RangeAnalysis(mlir::func::FuncOp function, const Assumptions &assumptions);

  /// The range of a value of the function as it is stored.
  const Range &rangeOf(mlir::Value value) const { return stored.find(value)->second; }
  /// In the order of operations.
  llvm::ArrayRef<LowTensor> lowTensors() const { return low; }
  /// The operations that \p value becomes large through, the first one first: at most \p length.
  std::vector<mlir::Operation *> chainOf(mlir::Value value, size_t length) const;

private:
  void visit(mlir::Block &block);
  void visit(mlir::Operation &op);
  void store(mlir::Value value, Range range);
  Range ofArgument(mlir::BlockArgument argument) const;

  const Assumptions &assumptions;
  llvm::DenseMap<mlir::Value, Range> stored;
  llvm::SmallVector<LowTensor> low;
};

/// The ranges of what the initialisers of \p init, the function `init_state` of a module, return, by name.
llvm::StringMap<Range> initialState(mlir::func::FuncOp init);

} // namespace mpc::ranges
