// What storing does to real values: where a type ends, and how it rounds.
#pragma once

#include "compiler/ranges/range_analysis.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace mpc::ranges {

/// What f32 arithmetic of one operation may add to a bound, relatively. Sums count their own errors (sumError).
inline constexpr double kArithmetic = 0x1p-18;

/// A floating type of 16 or 32 bits that rounds to nearest, ties to even.
struct StoredFormat {
  /// None for another type.
  static std::optional<StoredFormat> of(mlir::Type element);

  bool isLow;      ///< it has 16 bits
  double infinite; ///< the smallest size that is stored as infinity
  double largest;  ///< the largest finite value
  double least;    ///< the smallest size that is not zero
  double error;    ///< the largest relative error of a size that is not subnormal

  /// The largest size that is stored as zero.
  double vanishing() const { return least / 2; }

  Verdict overflow(const Range &exact) const;
  Verdict underflow(const Range &exact) const;
  /// Makes \p range, which holds for real numbers, hold for the finite values of a tensor of \p shape that stores them.
  void round(Range &range, llvm::ArrayRef<int64_t> shape) const;
};

} // namespace mpc::ranges
