// Operands of row products, and what products of pairs of bf16 are held to, with and without tiles.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/row_products.h"

namespace mpc::test {

/// a [rows, depth], b [depth, columns] and its transpose, of numbers that bf16 has.
struct ProductOperands {
  std::int64_t rows, depth, columns;
  std::vector<float> a, b, b_transposed;

  ProductOperands(std::int64_t rows, std::int64_t depth, std::int64_t columns, std::mt19937& engine);

  static std::size_t At(std::int64_t row, std::int64_t columns, std::int64_t column) {
    return static_cast<std::size_t>(row * columns + column);
  }
  /// "24x64x256": rows, depth and columns.
  std::string Name() const;
  /// Elements from row to row of c.
  std::int64_t c_stride() const { return cpu::PaddedToPanel(columns); }
  /// What products are added to. Its rows are padded to a tile.
  std::vector<float> C() const;
};

/// Extents of one tile or panel, of several, and between them.
std::vector<ProductOperands> DrawnProducts();

/// c + a b with `Pair`, Bf16Pair or TilePair. The right operand is packed from b or from its transpose, the left one
/// from rows or from its transpose. The rows that c is padded with are left out.
template <typename Pair>
std::vector<float> ProductOfPairs(const ProductOperands& operands, bool packs_transpose, bool transposes_rows);

/// Every result is within a rounding for each term, as it is added, and the forms give equal bits.
template <typename Pair>
void ExpectProductsWithinTheBoundOfAChain();
template <typename Pair>
void ExpectNaNsAndInfinitiesOfTerms();
template <typename Pair>
void ExpectSubnormalNumbersCountAsZero();

}  // namespace mpc::test
