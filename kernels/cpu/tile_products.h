// Products on tiles whose operands lie in pieces, and packers of what they read. Those of plain matrices are in
// row_products.h. All of it needs MultipliesTiles().
#pragma once

#include <cstdint>

#include "kernels/cpu/float_rows.h"
#include "kernels/cpu/row_products.h"

namespace mpc::cpu {

/// A block of a product: at most two tiles of rows and of columns.
struct TileBlock {
  const TilePair* a;        ///< the first of its rows
  std::int64_t a_stride;    ///< pairs from row to row
  std::int64_t a_below;     ///< pairs from the first tile of rows to the second one
  std::int64_t a_behind;    ///< pairs from tile to tile of terms, where no offsets say it
  const TilePair* panels;   ///< the first of its panels
  std::int64_t panel_size;  ///< pairs from panel to panel
  float* c;
  std::int64_t c_stride;
  bool two_rows, two_columns;  ///< tiles
  bool adds = true;            ///< to c; else it is overwritten
};

/// c += a b, or c = a b, over `tiles` tiles of terms. Tile t of a begins `offsets[t]` pairs behind `a`, null:
/// t * a_behind. Tiles of panels follow each other.
void AddTileBlock(const TileBlock& block, const std::int64_t* offsets, std::int64_t tiles);

/// Packs pairs of rows that lie anywhere into a panel. Pair k has column `column` + j of rows[2k] and rows[2k + 1] in
/// lane j. Null is a row of zeros.
void PackPairsOfRows(const std::uint16_t* const* rows, std::int64_t pairs, std::int64_t column, TilePair* panel);

/// Packs `count` rows of `depth` numbers of bf16 into whole tiles. Those of sixteen rows follow each other along the
/// depth, and those of the next rows follow them. Zeros follow the depth. Rows that there are not stay as they were.
void PackTilesOfRows(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t depth,
                     TilePair* tiles);

/// The same for the transpose of `depth` rows of `count` numbers.
void PackTilesOfTransposedRows(const std::uint16_t* rows, std::int64_t depth, std::int64_t stride, std::int64_t count,
                               TilePair* tiles);

/// Stores the transpose of [count, columns], whose rows are `stride` apart, as a left operand: `columns` rows of
/// LengthOf<TilePair>(count) pairs, which are `to_stride` pairs apart.
void TransposeRowsTo(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t columns,
                     TilePair* to, std::int64_t to_stride);

/// As StoreRows (float_rows.h). Numbers that are subnormal in f32 may become 0 in bf16.
void StoreRoundedRows(DType dtype, const FloatRows& rows, const float* addend, void* to, std::int64_t to_stride);

/// The same for `count` numbers to which nothing is added.
void StoreRounded(DType dtype, const float* from, void* to, std::int64_t count);

/// to[j * count + i] = rows[i * stride + j] for `count` rows of `columns` numbers, a multiple of 16.
void TransposeFloats(const float* rows, std::int64_t count, std::int64_t stride, std::int64_t columns, float* to);

/// A matrix of bf16 whose rows are terms: `channels` of each of `taps`. Number (tap, channel, column) is
/// numbers[tap + channel * channel_stride + column * column_stride]. Columns are multiples of 16, channels even.
struct TapMatrix {
  std::int64_t taps, channels, columns;
  std::int64_t channel_stride, column_stride;
  bool reverses_taps;  ///< the last tap is packed first

  std::int64_t panel_pairs() const { return taps * channels / 2 * kPanel; }
};

/// Packs the panel of sixteen columns from `column` on, of panel_pairs() pairs.
void PackPanelOfTaps(const TapMatrix& matrix, const std::uint16_t* numbers, std::int64_t column, TilePair* panel);

}  // namespace mpc::cpu
