// Products of small matrices inside a task, for operations that keep their intermediates in the cache. The right
// operand is packed into *panels* of 16 columns, so that the inner loop reads it in order. Every element of the result
// is one chain of additions in f32 along the depth, whatever the blocking. Operands are f32, with a fused multiply-add
// for each term, or pairs of bf16, of which one instruction adds both products. On tiles a chain adds the sums of 32
// terms each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/tiles.h"

namespace mpc::cpu {

inline constexpr std::int64_t kPanel = 16;

/// The choice of kernels that multiply f32 in panels. Others are computed with other instructions or by the library.
inline constexpr char kInPanels[] = "f32 panels";

/// Columns of the panels that hold `columns`.
constexpr std::int64_t PaddedToPanel(std::int64_t columns) { return (columns + kPanel - 1) / kPanel * kPanel; }

/// Two numbers that follow each other along the depth of a product. An operand of an odd depth ends with a pair whose
/// second number is 0.
struct Bf16Pair {
  std::uint16_t first, second;
};

/// A pair of an operand whose products are computed on tiles. Zeros follow its depth up to a whole tile.
struct TilePair : Bf16Pair {};

/// The terms of a product of two tiles. A depth that operands share in part is a multiple of it.
inline constexpr std::int64_t kTileDepth = 2 * kTilePairs;

/// `extent` up to a whole tile.
constexpr std::int64_t PaddedToTile(std::int64_t extent) {
  static_assert(kTileRows == kPanel);
  return PaddedToPanel(extent);
}

/// Whether products of f32 in panels may be faster than the library's: there are fused multiply-adds, and oneDNN has no
/// vectors of 16 lanes (ONEDNN_MAX_CPU_ISA).
bool MultipliesFloats();

/// Whether this processor has products of pairs, and oneDNN may use them, too (ONEDNN_MAX_CPU_ISA).
bool MultipliesPairs();

/// How many numbers or pairs an operand has along a depth.
template <typename Number>
constexpr std::int64_t LengthOf(std::int64_t depth) {
  if (std::is_same_v<Number, TilePair>) return (depth + kTileDepth - 1) / kTileDepth * kTilePairs;
  return std::is_same_v<Number, Bf16Pair> ? (depth + 1) / 2 : depth;
}

/// Zeros for the columns that the last panel lacks. Panels have `length` numbers or pairs along the depth.
template <typename Number>
void ClearPadding(std::int64_t length, std::int64_t columns, Number* panels) {
  if (columns % kPanel == 0) return;
  std::fill_n(panels + columns / kPanel * kPanel * length, kPanel * length, Number{});
}

/// Packs the [depth, columns] matrix at `base` of `x`, whose rows are `stride` apart. Columns are padded with zeros:
/// PaddedToPanel(columns) * depth floats.
inline void PackPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                       float* panels) {
  ClearPadding(depth, columns, panels);
  BlockBuffer buffer;
  for (std::int64_t k = 0; k < depth; ++k) {
    for (std::int64_t start = 0; start < columns; start += kBlock) {
      const std::int64_t size = std::min(kBlock, columns - start);
      const float* values = x.Load(base + k * stride + start, size, buffer.values);
      for (std::int64_t j = 0; j < size; j += kPanel) {
        std::copy_n(values + j, std::min(kPanel, size - j), panels + ((start + j) * depth + k * kPanel));
      }
    }
  }
}

/// As PackPanels, for the transpose of the [columns, depth] matrix at `base`, whose rows are `stride` apart.
inline void PackTransposedPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth,
                                 std::int64_t columns, float* panels) {
  ClearPadding(depth, columns, panels);
  BlockBuffer buffer;
  for (std::int64_t j = 0; j < columns; ++j) {
    float* const column = panels + j / kPanel * kPanel * depth + j % kPanel;
    for (std::int64_t start = 0; start < depth; start += kBlock) {
      const std::int64_t size = std::min(kBlock, depth - start);
      const float* values = x.Load(base + j * stride + start, size, buffer.values);
      for (std::int64_t k = 0; k < size; ++k) column[(start + k) * kPanel] = values[k];
    }
  }
}

/// The same for a matrix of bf16: PaddedToPanel(columns) * LengthOf<Pair>(depth) pairs. Tiles need MultipliesTiles().
void PackPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                Bf16Pair* panels);
void PackPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                TilePair* panels);
void PackTransposedPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                          Bf16Pair* panels);
/// Where MultipliesTiles().
void PackTransposedPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                          TilePair* panels);

/// Joins rows 2r and 2r + 1 of [count, columns], which are `stride` apart, to row r of `pairs`, whose rows are
/// `pair_stride` apart. An odd last row is joined to zeros.
void PairRows(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t columns, Bf16Pair* pairs,
              std::int64_t pair_stride);

/// Stores the transpose of [count, columns], whose rows are `stride` apart, as a left operand on tiles: `columns` rows
/// of LengthOf<TilePair>(count) pairs. Where MultipliesTiles().
void TransposeRows(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t columns,
                   TilePair* pairs);

/// A left operand: number or pair (i, k) is data[i * row_stride + k * depth_stride].
template <typename Number>
struct LeftMatrix {
  const Number* data;
  std::int64_t row_stride, depth_stride;
};

/// The rows of a from row `row` on.
template <typename Number>
LeftMatrix<Number> RowsFrom(const LeftMatrix<Number>& a, std::int64_t row) {
  return {a.data + row * a.row_stride, a.row_stride, a.depth_stride};
}

/// c += a b for `rows` rows of a and the first `columns` columns of b, whose panels hold `panel_depth` >= `depth` rows.
/// Rows of c are `c_stride` apart and padded: all of the last panel's columns are written.
void AddProduct(const LeftMatrix<float>& a, std::int64_t rows, std::int64_t depth, const float* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride);
/// Where MultipliesPairs(). Numbers that are subnormal in f32 count as 0. Where `depth` is odd and less than
/// `panel_depth`, the row of b behind it is multiplied by 0.
void AddProduct(const LeftMatrix<Bf16Pair>& a, std::int64_t rows, std::int64_t depth, const Bf16Pair* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride);
/// Where MultipliesTiles(), in a TileScope. Rows of a and c are padded to whole tiles, and so is the depth. What is in
/// padded rows of a reaches the same rows of c alone. The depth stride of a is 1. Where `depth` is no multiple of
/// kTileDepth it is `panel_depth`. Subnormal numbers count as 0.
void AddProduct(const LeftMatrix<TilePair>& a, std::int64_t rows, std::int64_t depth, const TilePair* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride);

/// c = a b, else as AddProduct.
template <typename Number>
void SetProduct(const LeftMatrix<Number>& a, std::int64_t rows, std::int64_t depth, const Number* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride) {
  for (std::int64_t r = 0; r < rows; ++r) std::fill_n(c + r * c_stride, PaddedToPanel(columns), 0.0f);
  AddProduct(a, rows, depth, panels, panel_depth, columns, c, c_stride);
}
void SetProduct(const LeftMatrix<TilePair>& a, std::int64_t rows, std::int64_t depth, const TilePair* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride);

}  // namespace mpc::cpu
