// Scales that users multiply their losses by.
#pragma once

#include "mlir/IR/Value.h"

#include <optional>

namespace mpc {

/// The number that every element of a floating constant is; none where \p v is no such constant.
std::optional<double> constantSplat(mlir::Value v);

/// Whether \p loss may have a scale of the user's own, which \p lossScale divides out. It has where it ends in products
/// and a factor, or the factors so far together, are that number. It may have where a factor is a value. A null loss
/// has none.
bool mayBeScaledByHand(mlir::Value loss, double lossScale);

} // namespace mpc
