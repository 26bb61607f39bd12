#include "kernels/cpu/row_products.h"

#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/onednn_common.h"

namespace mpc::cpu {
namespace {

#ifdef __FMA__

/// c[0 .. kRows)[0 .. 16) += a * panel.
template <int kRows>
void AddTile(const LeftMatrix<float>& a, std::int64_t depth, const float* panel, float* c, std::int64_t c_stride) {
  __m256 low[kRows], high[kRows];
  for (int r = 0; r < kRows; ++r) {
    low[r] = _mm256_loadu_ps(c + r * c_stride);
    high[r] = _mm256_loadu_ps(c + r * c_stride + 8);
  }
  const float* column = a.data;
  for (std::int64_t k = 0; k < depth; ++k, column += a.depth_stride) {
    const __m256 b_low = _mm256_loadu_ps(panel + k * kPanel);
    const __m256 b_high = _mm256_loadu_ps(panel + k * kPanel + 8);
    for (int r = 0; r < kRows; ++r) {
      const __m256 factor = _mm256_broadcast_ss(column + r * a.row_stride);
      low[r] = _mm256_fmadd_ps(factor, b_low, low[r]);
      high[r] = _mm256_fmadd_ps(factor, b_high, high[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(c + r * c_stride, low[r]);
    _mm256_storeu_ps(c + r * c_stride + 8, high[r]);
  }
}

#else

template <int kRows>
void AddTile(const LeftMatrix<float>& a, std::int64_t depth, const float* panel, float* c, std::int64_t c_stride) {
  for (int r = 0; r < kRows; ++r) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const float factor = a.data[r * a.row_stride + k * a.depth_stride];
      for (std::int64_t j = 0; j < kPanel; ++j) {
        c[r * c_stride + j] = std::fma(factor, panel[k * kPanel + j], c[r * c_stride + j]);
      }
    }
  }
}

#endif

#if defined(__x86_64__)

#define MPC_PAIR_TARGET [[gnu::target("avx512f,avx512bf16")]]

/// c[0 .. kRows)[0 .. 16 kPanels) += a * panels, which are `panel_size` pairs apart.
template <int kRows, int kPanels>
MPC_PAIR_TARGET void AddPairTile(const LeftMatrix<Bf16Pair>& a, std::int64_t depth, const Bf16Pair* panels,
                                 std::int64_t panel_size, float* c, std::int64_t c_stride) {
  __m512 sums[kRows][kPanels];
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) sums[r][p] = _mm512_loadu_ps(c + r * c_stride + p * kPanel);
  }
  const Bf16Pair* column = a.data;
  for (std::int64_t k = 0; k < depth; ++k, column += a.depth_stride) {
    __m512bh b[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      b[p] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panels + p * panel_size + k * kPanel));
    }
    for (int r = 0; r < kRows; ++r) {
      int pair;
      std::memcpy(&pair, column + r * a.row_stride, sizeof(pair));
      const auto factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      for (int p = 0; p < kPanels; ++p) sums[r][p] = _mm512_dpbf16_ps(sums[r][p], factor, b[p]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) _mm512_storeu_ps(c + r * c_stride + p * kPanel, sums[r][p]);
  }
}

/// All rows of a, for kPanels panels.
template <int kPanels>
MPC_PAIR_TARGET void AddPairPanels(const LeftMatrix<Bf16Pair>& a, std::int64_t rows, std::int64_t depth,
                                   const Bf16Pair* panels, std::int64_t panel_size, float* c, std::int64_t c_stride) {
  // Twelve rows of two vectors, and the two of b, fill most of the 32 registers.
  std::int64_t row = 0;
  for (; row + 12 <= rows; row += 12) {
    AddPairTile<12, kPanels>(RowsFrom(a, row), depth, panels, panel_size, c + row * c_stride, c_stride);
  }
  for (; row + 4 <= rows; row += 4) {
    AddPairTile<4, kPanels>(RowsFrom(a, row), depth, panels, panel_size, c + row * c_stride, c_stride);
  }
  for (; row < rows; ++row) {
    AddPairTile<1, kPanels>(RowsFrom(a, row), depth, panels, panel_size, c + row * c_stride, c_stride);
  }
}

#endif

/// Pairs of a row with the row behind it; null: there is none.
void PairColumns(const std::uint16_t* row, const std::uint16_t* next, std::int64_t columns, Bf16Pair* pairs) {
  if (next == nullptr) {
    for (std::int64_t j = 0; j < columns; ++j) pairs[j] = {row[j], 0};
  } else {
    for (std::int64_t j = 0; j < columns; ++j) pairs[j] = {row[j], next[j]};
  }
}

}  // namespace

bool MultipliesFloats() {
#ifdef __FMA__
  return !UsesInstructionsOf(dnnl::cpu_isa::avx512_core);
#else
  return false;
#endif
}

bool MultipliesPairs() { return IsNative(DType::kBF16); }

void AddProduct(const LeftMatrix<float>& a, std::int64_t rows, std::int64_t depth, const float* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride) {
  // Six rows of two vectors fill the sixteen AVX registers.
  constexpr std::int64_t kRows = 6;
  for (std::int64_t column = 0; column < columns; column += kPanel) {
    const float* const panel = panels + column * panel_depth;
    float* const results = c + column;
    std::int64_t row = 0;
    for (; row + kRows <= rows; row += kRows) {
      AddTile<kRows>(RowsFrom(a, row), depth, panel, results + row * c_stride, c_stride);
    }
    for (; row + 2 <= rows; row += 2) {
      AddTile<2>(RowsFrom(a, row), depth, panel, results + row * c_stride, c_stride);
    }
    if (row < rows) AddTile<1>(RowsFrom(a, row), depth, panel, results + row * c_stride, c_stride);
  }
}

void AddProduct(const LeftMatrix<Bf16Pair>& a, std::int64_t rows, std::int64_t depth, const Bf16Pair* panels,
                std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride) {
#if defined(__x86_64__)
  const std::int64_t length = LengthOf<Bf16Pair>(depth), panel_size = kPanel * LengthOf<Bf16Pair>(panel_depth);
  std::int64_t column = 0;
  for (; column + kPanel < columns; column += 2 * kPanel) {
    AddPairPanels<2>(a, rows, length, panels + column / kPanel * panel_size, panel_size, c + column, c_stride);
  }
  if (column < columns) {
    AddPairPanels<1>(a, rows, length, panels + column / kPanel * panel_size, panel_size, c + column, c_stride);
  }
#endif
}

void PackPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                Bf16Pair* panels) {
  const std::int64_t length = LengthOf<Bf16Pair>(depth);
  ClearPadding(length, columns, panels);
  for (std::int64_t k = 0; k < length; ++k) {
    const std::uint16_t* const row = static_cast<const std::uint16_t*>(x.data) + base + 2 * k * stride;
    const std::uint16_t* const next = 2 * k + 1 < depth ? row + stride : nullptr;
    for (std::int64_t j = 0; j < columns; j += kPanel) {
      PairColumns(row + j, next == nullptr ? nullptr : next + j, std::min(kPanel, columns - j),
                  panels + (j * length + k * kPanel));
    }
  }
}

void PackTransposedPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                          Bf16Pair* panels) {
  const std::int64_t length = LengthOf<Bf16Pair>(depth);
  ClearPadding(length, columns, panels);
  for (std::int64_t j = 0; j < columns; j += kPanel) {
    const std::uint16_t* const rows = static_cast<const std::uint16_t*>(x.data) + base + j * stride;
    const std::int64_t count = std::min(kPanel, columns - j);
    Bf16Pair* const panel = panels + j * length;
    for (std::int64_t k = 0; k < depth / 2; ++k) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(panel + k * kPanel + i, rows + i * stride + 2 * k, sizeof(Bf16Pair));
      }
    }
    if (depth % 2 == 0) continue;
    for (std::int64_t i = 0; i < count; ++i) panel[(length - 1) * kPanel + i] = {rows[i * stride + depth - 1], 0};
  }
}

void PairRows(const std::uint16_t* rows, std::int64_t count, std::int64_t stride, std::int64_t columns, Bf16Pair* pairs,
              std::int64_t pair_stride) {
  for (std::int64_t r = 0; r < count; r += 2) {
    const std::uint16_t* const row = rows + r * stride;
    PairColumns(row, r + 1 < count ? row + stride : nullptr, columns, pairs + r / 2 * pair_stride);
  }
}

}  // namespace mpc::cpu
