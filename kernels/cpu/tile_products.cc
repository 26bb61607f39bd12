// Products on tiles: the functions of row_products.h for operands of TilePair.
#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/lane_transpose.h"
#include "kernels/cpu/row_products.h"

namespace mpc::cpu {

#if defined(__x86_64__)

namespace {

/// What AddTiles multiplies: rows of a, two panels of b and their place in c. Strides are in numbers.
struct TileOperands {
  const TilePair* a;
  const TilePair* panels;
  float* c;
  std::int64_t a_stride, panel_size, c_stride;
  std::int64_t tiles;  ///< tiles along the depth
};

/// c += a b for one or two tiles of rows and of columns. Each tile of an operand is loaded for two products.
template <bool kTwoRows, bool kTwoColumns>
[[gnu::target("amx-tile,amx-bf16"), gnu::noinline]] void AddTiles(const TileOperands& operands) {
  const auto& [a, panels, c, a_stride, panel_size, c_stride, tiles] = operands;
  const std::int64_t a_bytes = a_stride * 4, c_bytes = c_stride * 4, panel_bytes = kPanel * 4;
  float* const c_below = c + kTileRows * c_stride;
  // To the compiler the loads of tiles read nothing that was stored before.
  asm volatile("" ::: "memory");
  _tile_loadd(0, c, c_bytes);
  if constexpr (kTwoColumns) _tile_loadd(1, c + kPanel, c_bytes);
  if constexpr (kTwoRows) _tile_loadd(2, c_below, c_bytes);
  if constexpr (kTwoRows && kTwoColumns) _tile_loadd(3, c_below + kPanel, c_bytes);
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const TilePair* const rows = a + tile * kTilePairs;
    const TilePair* const columns = panels + tile * kTilePairs * kPanel;
    _tile_loadd(4, rows, a_bytes);
    _tile_loadd(6, columns, panel_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoColumns) {
      _tile_loadd(7, columns + panel_size, panel_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTwoRows) {
      _tile_loadd(5, rows + kTileRows * a_stride, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kTwoRows && kTwoColumns) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_bytes);
  if constexpr (kTwoColumns) _tile_stored(1, c + kPanel, c_bytes);
  if constexpr (kTwoRows) _tile_stored(2, c_below, c_bytes);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, c_below + kPanel, c_bytes);
}

#define MPC_AVX512 [[gnu::target("avx512f")]]

/// The first 32 numbers of a row, of which there are `count`, or zeros.
MPC_AVX512 __m512i LoadPairs(const std::uint16_t* row, std::int64_t count) {
  alignas(64) std::uint16_t values[2 * kTilePairs] = {};
  if (count >= 2 * kTilePairs) return _mm512_loadu_si512(row);
  std::copy_n(row, count, values);
  return _mm512_load_si512(values);
}

/// The first `columns` numbers of a row, each in the low half of a lane. The other lanes are zeros.
MPC_AVX512 __m512i LoadRow(const std::uint16_t* row, std::int64_t columns) {
  alignas(32) std::uint16_t values[16] = {};
  if (columns < 16) row = std::copy_n(row, columns, values) - columns;
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)));
}

/// Stores the transpose of pairs of `count` rows, at most 32. Where there are fewer, the pairs behind them are zeros.
MPC_AVX512 void TransposeBlockOfPairs(const std::uint16_t* rows, std::int64_t count, std::int64_t stride,
                                      std::int64_t columns, TilePair* to, std::int64_t to_stride) {
  __m512i pairs[16];
  for (std::int64_t r = 0; r < 16; ++r) {
    pairs[r] = 2 * r < count ? LoadRow(rows + 2 * r * stride, columns) : _mm512_setzero_si512();
    if (2 * r + 1 >= count) continue;
    pairs[r] = _mm512_or_si512(pairs[r], _mm512_slli_epi32(LoadRow(rows + (2 * r + 1) * stride, columns), 16));
  }
  TransposeLanes(pairs);
  for (std::int64_t j = 0; j < columns; ++j) _mm512_storeu_si512(to + j * to_stride, pairs[j]);
}

/// Stores a tile of a panel: the transpose of `rows` rows of `depth` numbers, at most 16 of 32.
MPC_AVX512 void PackTile(const std::uint16_t* x, std::int64_t stride, std::int64_t rows, std::int64_t depth,
                         TilePair* tile) {
  __m512i pairs[16];
  for (std::int64_t i = 0; i < 16; ++i) {
    pairs[i] = i < rows ? LoadPairs(x + i * stride, depth) : _mm512_setzero_si512();
  }
  TransposeLanes(pairs);
  for (std::int64_t k = 0; k < 16; ++k) _mm512_storeu_si512(tile + k * kPanel, pairs[k]);
}

}  // namespace

void PackTransposedPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                          TilePair* panels) {
  const std::int64_t length = LengthOf<TilePair>(depth);
  for (std::int64_t j = 0; j < columns; j += kPanel) {
    const std::uint16_t* const rows = static_cast<const std::uint16_t*>(x.data) + base + j * stride;
    for (std::int64_t k = 0; k < length; k += kTilePairs) {
      PackTile(rows + 2 * k, stride, std::min(kPanel, columns - j), depth - 2 * k, panels + j * length + k * kPanel);
    }
  }
}

void TransposeRows(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t columns,
                   TilePair* pairs) {
  const std::int64_t length = LengthOf<TilePair>(count);
  for (std::int64_t k = 0; k < length; k += kTilePairs) {
    for (std::int64_t j = 0; j < columns; j += kTilePairs) {
      TransposeBlockOfPairs(rows + 2 * k * stride + j, count - 2 * k, stride, std::min(kTilePairs, columns - j),
                            pairs + j * length + k, length);
    }
  }
}

void AddProduct(const LeftMatrix<TilePair>& a, std::int64_t rows, std::int64_t depth, const TilePair* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride) {
  const std::int64_t panel_length = LengthOf<TilePair>(panel_depth);
  for (std::int64_t row = 0; row < rows; row += 2 * kTileRows) {
    const bool two_rows = rows - row > kTileRows;
    for (std::int64_t column = 0; column < columns; column += 2 * kPanel) {
      const bool two_columns = columns - column > kPanel;
      const auto add = two_rows ? (two_columns ? AddTiles<true, true> : AddTiles<true, false>)
                                : (two_columns ? AddTiles<false, true> : AddTiles<false, false>);
      add({a.data + row * a.row_stride, panels + column * panel_length, c + row * c_stride + column, a.row_stride,
           kPanel * panel_length, c_stride, LengthOf<TilePair>(depth) / kTilePairs});
    }
  }
}

#else

void PackTransposedPanels(Source, std::int64_t, std::int64_t, std::int64_t, std::int64_t, TilePair*) {}
void TransposeRows(const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t, TilePair*) {}
void AddProduct(const LeftMatrix<TilePair>&, std::int64_t, std::int64_t, const TilePair*, std::int64_t, std::int64_t,
                float*, std::int64_t) {}

#endif

}  // namespace mpc::cpu
