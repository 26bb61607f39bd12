// Products on tiles: the functions of row_products.h for operands of TilePair, too.
#include "kernels/cpu/tile_products.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/lane_transpose.h"

namespace mpc::cpu {

#if defined(__x86_64__)

namespace {

/// The product of one or two tiles of rows and of columns. Each tile of an operand is loaded for two products. Tile t
/// of a begins at `offset_of(t)`.
template <bool kTwoRows, bool kTwoColumns, typename OffsetOf>
[[gnu::target("amx-tile,amx-bf16"), gnu::noinline]] void AddTiles(const TileBlock& block, std::int64_t tiles,
                                                                  const OffsetOf& offset_of) {
  const std::int64_t a_bytes = block.a_stride * 4, c_bytes = block.c_stride * 4, panel_bytes = kPanel * 4;
  float* const c = block.c;
  float* const c_below = c + kTileRows * block.c_stride;
  // To the compiler the loads of tiles read nothing that was stored before.
  asm volatile("" ::: "memory");
  if (block.adds) {
    _tile_loadd(0, c, c_bytes);
    if constexpr (kTwoColumns) _tile_loadd(1, c + kPanel, c_bytes);
    if constexpr (kTwoRows) _tile_loadd(2, c_below, c_bytes);
    if constexpr (kTwoRows && kTwoColumns) _tile_loadd(3, c_below + kPanel, c_bytes);
  } else {
    _tile_zero(0);
    if constexpr (kTwoColumns) _tile_zero(1);
    if constexpr (kTwoRows) _tile_zero(2);
    if constexpr (kTwoRows && kTwoColumns) _tile_zero(3);
  }
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const TilePair* const rows = block.a + offset_of(tile);
    const TilePair* const columns = block.panels + tile * kTilePairs * kPanel;
    _tile_loadd(4, rows, a_bytes);
    _tile_loadd(6, columns, panel_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoColumns) {
      _tile_loadd(7, columns + block.panel_size, panel_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTwoRows) {
      _tile_loadd(5, rows + block.a_below, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kTwoRows && kTwoColumns) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_bytes);
  if constexpr (kTwoColumns) _tile_stored(1, c + kPanel, c_bytes);
  if constexpr (kTwoRows) _tile_stored(2, c_below, c_bytes);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, c_below + kPanel, c_bytes);
}

template <typename OffsetOf>
void AddBlock(const TileBlock& block, std::int64_t tiles, const OffsetOf& offset_of) {
  const auto add = block.two_rows
                       ? (block.two_columns ? AddTiles<true, true, OffsetOf> : AddTiles<true, false, OffsetOf>)
                       : (block.two_columns ? AddTiles<false, true, OffsetOf> : AddTiles<false, false, OffsetOf>);
  add(block, tiles, offset_of);
}

#define MPC_AVX512 [[gnu::target("avx512f,avx512bw")]]
#define MPC_AVX512_BF16 [[gnu::target("avx512bf16,avx512bw")]]

/// The first 32 numbers of a row, of which there are `count`, or zeros. Behind them nothing is read.
MPC_AVX512 inline __m512i LoadColumns(const std::uint16_t* row, std::int64_t count) {
  if (count >= 2 * kPanel) return _mm512_loadu_si512(row);
  return _mm512_maskz_loadu_epi16((__mmask32{1} << std::max<std::int64_t>(count, 0)) - 1, row);
}

/// Sixteen numbers of a row, each in the low half of a lane.
MPC_AVX512 inline __m512i LoadLanes(const std::uint16_t* row) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)));
}

/// The same from column `column` on. Null is a row of zeros.
MPC_AVX512 inline __m512i LoadLanesOrZeros(const std::uint16_t* row, std::int64_t column) {
  return row == nullptr ? _mm512_setzero_si512() : LoadLanes(row + column);
}

/// The first `columns` numbers of a row, each in the low half of a lane. The other lanes are zeros.
MPC_AVX512 inline __m512i LoadRow(const std::uint16_t* row, std::int64_t columns) {
  if (columns >= kPanel) return LoadLanes(row);
  return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(LoadColumns(row, columns)));
}

/// Stores the transpose of pairs of the first 32 of `count` rows. Where there are fewer, the pairs behind them are
/// zeros. The rows behind those are wanted next. Each may be in a page of its own, which the processor does not
/// foresee.
MPC_AVX512 void TransposeBlockOfPairs(const std::uint16_t* rows, std::int64_t count, std::int64_t stride,
                                      std::int64_t columns, TilePair* to, std::int64_t to_stride) {
  __m512i pairs[16];
  for (std::int64_t r = kTileDepth; r < std::min(count, 2 * kTileDepth); ++r) __builtin_prefetch(rows + r * stride);
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
    pairs[i] = i < rows ? LoadColumns(x + i * stride, depth) : _mm512_setzero_si512();
  }
  TransposeLanes(pairs);
  for (std::int64_t k = 0; k < 16; ++k) _mm512_storeu_si512(tile + k * kPanel, pairs[k]);
}

MPC_AVX512 inline __m512i GatherLanes(__m512i index, const std::uint16_t* numbers) {
  return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), 0xFFFF, index, numbers, 2);
}

/// Pairs of the low half of each lane of `first`, and the high half of `second`.
MPC_AVX512 inline __m512i JoinHalves(__m512i first, __m512i second) {
  const __m512i low = _mm512_set1_epi32(0xFFFF);
  return _mm512_ternarylogic_epi32(low, first, second, 0xCA);
}

/// Where vpermt2w finds pairs of the first sixteen numbers of two vectors.
MPC_AVX512 __m512i PairOrder() {
  alignas(64) std::uint16_t order[2 * kPanel];
  for (std::uint16_t j = 0; j < kPanel; ++j) {
    order[2 * j] = j;
    order[2 * j + 1] = static_cast<std::uint16_t>(2 * kPanel + j);
  }
  return _mm512_load_si512(order);
}

/// c += a b, or c = a b.
void Multiply(const LeftMatrix<TilePair>& a, std::int64_t rows, std::int64_t depth, const TilePair* panels,
              std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride, bool adds) {
  const std::int64_t panel_size = kPanel * LengthOf<TilePair>(panel_depth);
  const std::int64_t tiles = LengthOf<TilePair>(depth) / kTilePairs;
  for (std::int64_t row = 0; row < rows; row += 2 * kTileRows) {
    for (std::int64_t column = 0; column < columns; column += 2 * kPanel) {
      AddTileBlock({.a = a.data + row * a.row_stride,
                    .a_stride = a.row_stride,
                    .a_below = kTileRows * a.row_stride,
                    .a_behind = kTilePairs,
                    .panels = panels + column / kPanel * panel_size,
                    .panel_size = panel_size,
                    .c = c + row * c_stride + column,
                    .c_stride = c_stride,
                    .two_rows = rows - row > kTileRows,
                    .two_columns = columns - column > kPanel,
                    .adds = adds},
                   nullptr, tiles);
    }
  }
}

/// The same as vcvtne2ps2bf16 on processors without it. Subnormal numbers stay what they are.
MPC_AVX512 inline __m256i RoundLanes(__m512 numbers) {
  const __m512i bits = _mm512_castps_si512(numbers), high = _mm512_srli_epi32(bits, 16);
  const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
  const __mmask16 is_nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7F800000));
  const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
  const __m512i rounded = _mm512_mask_mov_epi32(_mm512_srli_epi32(sum, 16), is_nan, quiet);
  return _mm512_maskz_cvtepi32_epi16(0xFFFF, rounded);
}

/// 32 numbers as bf16, rounded to nearest even. NaN stays NaN.
struct RoundByInstruction {
  MPC_AVX512_BF16 __m512i operator()(__m512 first, __m512 second) const {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  }
};
struct RoundByBits {
  MPC_AVX512 __m512i operator()(__m512 first, __m512 second) const {
    return _mm512_inserti64x4(_mm512_castsi256_si512(RoundLanes(first)), RoundLanes(second), 1);
  }
};

/// Numbers of a row that `mask` takes, with those of `addends` unless it is null.
MPC_AVX512 inline __m512 LoadSums(__mmask16 mask, const float* row, const float* addends) {
  const __m512 numbers = _mm512_maskz_loadu_ps(mask, row);
  return addends == nullptr ? numbers : _mm512_add_ps(numbers, _mm512_maskz_loadu_ps(mask, addends));
}

/// It becomes a part of its caller, and so does `round`. Its instructions are those that the caller is compiled for.
template <typename Round>
MPC_AVX512 [[gnu::always_inline]] inline void RoundRows(const Round& round, const FloatRows& rows, const float* addend,
                                                        std::uint16_t* to, std::int64_t to_stride) {
  for (std::int64_t column = 0; column < rows.columns; column += 2 * kPanel) {
    const std::int64_t size = std::min(2 * kPanel, rows.columns - column);
    const auto stored = static_cast<__mmask32>((std::uint64_t{1} << size) - 1);
    const auto first = static_cast<__mmask16>(stored), second = static_cast<__mmask16>(stored >> kPanel);
    const float* const addends = addend == nullptr ? nullptr : addend + column;
    const float* const addends_behind = addend == nullptr ? nullptr : addends + kPanel;
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const float* const row = rows.data + r * rows.stride + column;
      const __m512i rounded = round(LoadSums(first, row, addends), LoadSums(second, row + kPanel, addends_behind));
      _mm512_mask_storeu_epi16(to + r * to_stride + column, stored, rounded);
    }
  }
}

MPC_AVX512_BF16 void RoundRowsByInstruction(const FloatRows& rows, const float* addend, std::uint16_t* to,
                                            std::int64_t to_stride) {
  RoundRows(RoundByInstruction(), rows, addend, to, to_stride);
}
MPC_AVX512 void RoundRowsByBits(const FloatRows& rows, const float* addend, std::uint16_t* to, std::int64_t to_stride) {
  RoundRows(RoundByBits(), rows, addend, to, to_stride);
}

void RoundToBf16(const FloatRows& rows, const float* addend, std::uint16_t* to, std::int64_t to_stride) {
  static const bool has_instruction = __builtin_cpu_supports("avx512bf16") != 0;
  has_instruction ? RoundRowsByInstruction(rows, addend, to, to_stride) : RoundRowsByBits(rows, addend, to, to_stride);
}

}  // namespace

MPC_AVX512 void PackPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                           TilePair* panels) {
  const std::int64_t length = LengthOf<TilePair>(depth);
  const __m512i order = PairOrder(), order_behind = _mm512_add_epi16(order, _mm512_set1_epi16(kPanel));
  for (std::int64_t k = 0; k < length; ++k) {
    const std::uint16_t* const row = static_cast<const std::uint16_t*>(x.data) + base + 2 * k * stride;
    for (std::int64_t j = 0; j < columns; j += 2 * kPanel) {
      const std::int64_t size = columns - j;
      const __m512i zero = _mm512_setzero_si512();
      const __m512i first = 2 * k < depth ? LoadColumns(row + j, size) : zero;
      const __m512i second = 2 * k + 1 < depth ? LoadColumns(row + stride + j, size) : zero;
      TilePair* const panel = panels + j * length + k * kPanel;
      _mm512_storeu_si512(panel, _mm512_permutex2var_epi16(first, order, second));
      if (size <= kPanel) continue;
      _mm512_storeu_si512(panel + kPanel * length, _mm512_permutex2var_epi16(first, order_behind, second));
    }
  }
}

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

MPC_AVX512 void PackTilesOfRows(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t depth,
                                TilePair* tiles) {
  const std::int64_t length = LengthOf<TilePair>(depth);
  for (std::int64_t r = 0; r < count; ++r) {
    const std::uint16_t* const row = rows + r * stride;
    TilePair* const to = tiles + r / kTileRows * kTileRows * length + r % kTileRows * kTilePairs;
    for (std::int64_t k = 0; k < length; k += kTilePairs) {
      _mm512_storeu_si512(to + k * kTileRows, LoadColumns(row + 2 * k, depth - 2 * k));
    }
  }
}

void PackTilesOfTransposedRows(const std::uint16_t* rows, std::int64_t depth, std::int64_t stride, std::int64_t count,
                               TilePair* tiles) {
  const std::int64_t length = LengthOf<TilePair>(depth);
  for (std::int64_t k = 0; k < length; k += kTilePairs) {
    for (std::int64_t r = 0; r < count; r += kTileRows) {
      TransposeBlockOfPairs(rows + 2 * k * stride + r, depth - 2 * k, stride, std::min(kTileRows, count - r),
                            tiles + r * length + k * kTileRows, kTilePairs);
    }
  }
}

void TransposeRowsTo(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t columns,
                     TilePair* to, std::int64_t to_stride) {
  for (std::int64_t k = 0; k < LengthOf<TilePair>(count); k += kTilePairs) {
    for (std::int64_t j = 0; j < columns; j += kTilePairs) {
      TransposeBlockOfPairs(rows + 2 * k * stride + j, count - 2 * k, stride, std::min(kTilePairs, columns - j),
                            to + j * to_stride + k, to_stride);
    }
  }
}

void AddTileBlock(const TileBlock& block, const std::int64_t* offsets, std::int64_t tiles) {
  if (offsets == nullptr) {
    AddBlock(block, tiles, [behind = block.a_behind](std::int64_t tile) { return tile * behind; });
  } else {
    AddBlock(block, tiles, [offsets](std::int64_t tile) { return offsets[tile]; });
  }
}

void AddProduct(const LeftMatrix<TilePair>& a, std::int64_t rows, std::int64_t depth, const TilePair* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride) {
  Multiply(a, rows, depth, panels, panel_depth, columns, c, c_stride, true);
}

void SetProduct(const LeftMatrix<TilePair>& a, std::int64_t rows, std::int64_t depth, const TilePair* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride) {
  Multiply(a, rows, depth, panels, panel_depth, columns, c, c_stride, false);
}

MPC_AVX512 void PackPairsOfRows(const std::uint16_t* const* rows, std::int64_t pairs, std::int64_t column,
                                TilePair* panel) {
  for (std::int64_t k = 0; k < pairs; ++k) {
    const __m512i first = LoadLanesOrZeros(rows[2 * k], column), second = LoadLanesOrZeros(rows[2 * k + 1], column);
    _mm512_storeu_si512(panel + k * kPanel, _mm512_or_si512(first, _mm512_slli_epi32(second, 16)));
  }
}

MPC_AVX512 void TransposeFloats(const float* rows, std::int64_t count, std::int64_t stride, std::int64_t columns,
                                float* to) {
  constexpr std::int64_t kLanes = 16;
  for (std::int64_t row = 0; row < count; row += kLanes) {
    const std::int64_t size = std::min(kLanes, count - row);
    const auto stored = static_cast<__mmask16>((1u << size) - 1);
    for (std::int64_t column = 0; column < columns; column += kLanes) {
      __m512i lanes[kLanes];
      for (std::int64_t i = 0; i < kLanes; ++i) {
        lanes[i] = i < size ? _mm512_loadu_si512(rows + (row + i) * stride + column) : _mm512_setzero_si512();
      }
      TransposeLanes(lanes);
      for (std::int64_t j = 0; j < kLanes; ++j) {
        _mm512_mask_storeu_epi32(to + (column + j) * count + row, stored, lanes[j]);
      }
    }
  }
}

MPC_AVX512 void PackPanelOfTaps(const TapMatrix& matrix, const std::uint16_t* numbers, std::int64_t column,
                                TilePair* panel) {
  const auto& [taps, channels, columns, channel_stride, column_stride, reverses_taps] = matrix;
  alignas(64) std::int32_t lanes[kPanel];
  for (std::int64_t j = 0; j < kPanel; ++j) lanes[j] = static_cast<std::int32_t>(j * column_stride);
  const __m512i index = _mm512_load_si512(lanes);
  for (std::int64_t channel = 0; channel < channels; channel += 2) {
    const std::uint16_t* const first = numbers + column * column_stride + channel * channel_stride;
    const std::uint16_t* const second = first + channel_stride;
    const auto target = [&](std::int64_t tap) {
      const std::int64_t place = reverses_taps ? taps - 1 - tap : tap;
      return panel + (place * channels + channel) / 2 * kPanel;
    };
    // A lane that is loaded has the numbers of two taps.
    std::int64_t tap = 0;
    for (; tap + 1 < taps; tap += 2) {
      const __m512i firsts = GatherLanes(index, first + tap), seconds = GatherLanes(index, second + tap);
      _mm512_storeu_si512(target(tap), JoinHalves(firsts, _mm512_slli_epi32(seconds, 16)));
      _mm512_storeu_si512(target(tap + 1), JoinHalves(_mm512_srli_epi32(firsts, 16), seconds));
    }
    // Nothing is read behind the last number.
    if (tap == taps) continue;
    const __m512i firsts = GatherLanes(index, first + tap), seconds = GatherLanes(index, second + tap - 1);
    _mm512_storeu_si512(target(tap), JoinHalves(firsts, seconds));
  }
}

#else

void PackPanels(Source, std::int64_t, std::int64_t, std::int64_t, std::int64_t, TilePair*) {}
void PackTransposedPanels(Source, std::int64_t, std::int64_t, std::int64_t, std::int64_t, TilePair*) {}
void PackTilesOfRows(const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t, TilePair*) {}
void PackTilesOfTransposedRows(const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t, TilePair*) {}
void TransposeRowsTo(const std::uint16_t*, std::int64_t, std::int64_t, std::int64_t, TilePair*, std::int64_t) {}
void AddProduct(const LeftMatrix<TilePair>&, std::int64_t, std::int64_t, const TilePair*, std::int64_t, std::int64_t,
                float*, std::int64_t) {}
void SetProduct(const LeftMatrix<TilePair>&, std::int64_t, std::int64_t, const TilePair*, std::int64_t, std::int64_t,
                float*, std::int64_t) {}
void AddTileBlock(const TileBlock&, const std::int64_t*, std::int64_t) {}
void PackPairsOfRows(const std::uint16_t* const*, std::int64_t, std::int64_t, TilePair*) {}
static void RoundToBf16(const FloatRows& rows, const float* addend, std::uint16_t* to, std::int64_t to_stride) {
  StoreRows(DType::kBF16, rows, addend, to, to_stride);
}
void TransposeFloats(const float*, std::int64_t, std::int64_t, std::int64_t, float*) {}
void PackPanelOfTaps(const TapMatrix&, const std::uint16_t*, std::int64_t, TilePair*) {}

#endif

void StoreRoundedRows(DType dtype, const FloatRows& rows, const float* addend, void* to, std::int64_t to_stride) {
  if (dtype != DType::kBF16) return StoreRows(dtype, rows, addend, to, to_stride);
  RoundToBf16(rows, addend, static_cast<std::uint16_t*>(to), to_stride);
}

void StoreRounded(DType dtype, const float* from, void* to, std::int64_t count) {
  StoreRoundedRows(dtype, {from, count, 1, count}, nullptr, to, count);
}

}  // namespace mpc::cpu
