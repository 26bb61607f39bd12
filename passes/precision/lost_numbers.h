// Finds finite numbers of a network that a low type turns into zero or infinity.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <optional>
#include <string>

namespace mpc {

/// The first element of operand \p use that is a finite number other than zero and becomes zero or infinite in \p low.
/// None where the operand is no constant.
std::optional<double> lostElement(mlir::OpOperand &use, mlir::FloatType low);

/// The number with which add_scalar or mul_scalar gives results that \p low cannot hold. It is a term that becomes zero
/// or infinite in it, or a factor that becomes infinite. None for other operations.
std::optional<double> lostScalar(mlir::Operation *op, mlir::FloatType low);

/// The first number of either kind that \p op reads.
std::optional<double> lostNumber(mlir::Operation *op, mlir::FloatType low);

/// "constant -1e+09".
std::string constantText(double number);

} // namespace mpc
