// Products of small f32 matrices inside a task, for operations that keep their intermediates in the cache. The right
// operand is packed into *panels* of 16 columns, so that the inner loop reads it in order. Every element of the result
// is one chain of fused multiply-adds along the depth, whatever the blocking.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#ifdef __FMA__
#include <immintrin.h>
#endif

#include "kernels/cpu/blocks.h"

namespace mpc::cpu {

inline constexpr std::int64_t kPanel = 16;

/// Columns of the panels that hold `columns`.
inline std::int64_t PaddedToPanel(std::int64_t columns) { return (columns + kPanel - 1) / kPanel * kPanel; }

/// Packs the [depth, columns] matrix at `base` of `x`, whose rows are `stride` apart. Columns are padded with zeros:
/// PaddedToPanel(columns) * depth floats.
inline void PackPanels(Source x, std::int64_t base, std::int64_t stride, std::int64_t depth, std::int64_t columns,
                       float* panels) {
  std::fill_n(panels, PaddedToPanel(columns) * depth, 0.0f);
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
  std::fill_n(panels, PaddedToPanel(columns) * depth, 0.0f);
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

/// A left operand: element (i, k) is data[i * row_stride + k * depth_stride].
struct LeftMatrix {
  const float* data;
  std::int64_t row_stride, depth_stride;
};

namespace internal {

// c[0 .. kRows)[0 .. 16) += a * panel.
template <int kRows>
void AddPanelProduct(const LeftMatrix& a, std::int64_t depth, const float* panel, float* c, std::int64_t c_stride) {
#ifdef __FMA__
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
#else
  for (int r = 0; r < kRows; ++r) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const float factor = a.data[r * a.row_stride + k * a.depth_stride];
      for (std::int64_t j = 0; j < kPanel; ++j) {
        c[r * c_stride + j] = std::fma(factor, panel[k * kPanel + j], c[r * c_stride + j]);
      }
    }
  }
#endif
}

}  // namespace internal

/// c += a b for `rows` rows of a and the first `columns` columns of b, whose panels hold `panel_depth` >= `depth` rows.
/// Rows of c are `c_stride` apart and padded: all of the last panel's columns are written.
inline void AddProduct(const LeftMatrix& a, std::int64_t rows, std::int64_t depth, const float* panels,
                       std::int64_t panel_depth, std::int64_t columns, float* c, std::int64_t c_stride) {
  // Six rows of two vectors fill the sixteen AVX registers.
  constexpr std::int64_t kRows = 6;
  for (std::int64_t column = 0; column < columns; column += kPanel) {
    const float* const panel = panels + column * panel_depth;
    std::int64_t row = 0;
    const auto at = [&] { return LeftMatrix{a.data + row * a.row_stride, a.row_stride, a.depth_stride}; };
    for (; row + kRows <= rows; row += kRows) {
      internal::AddPanelProduct<kRows>(at(), depth, panel, c + row * c_stride + column, c_stride);
    }
    for (; row + 2 <= rows; row += 2) {
      internal::AddPanelProduct<2>(at(), depth, panel, c + row * c_stride + column, c_stride);
    }
    if (row < rows) internal::AddPanelProduct<1>(at(), depth, panel, c + row * c_stride + column, c_stride);
  }
}

}  // namespace mpc::cpu
