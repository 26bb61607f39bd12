// How a product of matrices is cut into parts for one thread each.
#pragma once

#include <cstdint>

namespace mpc::cpu {

/// Extents of y[m, n] = a[m, k] b[k, n].
struct ProductExtents {
  std::int64_t m, k, n;

  std::int64_t multiply_adds() const { return m * k * n; }
};

/// Rows of a and y, columns of b and y, and terms of sums in a part. The last part of each has what is left.
struct ProductPart {
  std::int64_t rows, columns, terms;
};

/// What of a product may be cut.
struct ProductCuts {
  bool columns = true;
  bool terms = true;  ///< into partial sums in f32
  /// Elements of a part's result at most, where there are many parts anyway.
  std::int64_t results = std::int64_t{1} << 20;
};

/// The parts of a product, which follow from its extents alone. One extent is cut: terms where there are many for each
/// element, columns where they are many more than rows, else rows. A product of few multiply-adds is one part.
ProductPart CutProduct(const ProductExtents& product, const ProductCuts& cuts);

/// The most parts, a power of two, that so many multiply-adds are worth.
std::int64_t MostParts(std::int64_t multiply_adds);

/// How many parts of `size` cover `extent`.
inline std::int64_t PartsOf(std::int64_t extent, std::int64_t size) { return (extent + size - 1) / size; }

}  // namespace mpc::cpu
