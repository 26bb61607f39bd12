#include "kernels/cpu/term_products.h"

#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mpc::cpu {
namespace {

#ifdef __FMA__

template <int kRows>
void SumRowsOfTerms(const TermProduct& product, bool adds, float* sums) {
  __m256 low[kRows], high[kRows];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) low[r] = _mm256_setzero_ps(), high[r] = _mm256_setzero_ps();
  for (const Term& term : product.terms) {
    const float* const column = product.block + term.left;
    const float* const row = product.panel + term.right;
    const __m256 b_low = _mm256_loadu_ps(row), b_high = _mm256_loadu_ps(row + 8);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256 factor = _mm256_broadcast_ss(column + r);
      low[r] = _mm256_fmadd_ps(factor, b_low, low[r]);
      high[r] = _mm256_fmadd_ps(factor, b_high, high[r]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    float* const at = sums + r * kPanel;
    if (adds) {
      low[r] = _mm256_add_ps(_mm256_loadu_ps(at), low[r]);
      high[r] = _mm256_add_ps(_mm256_loadu_ps(at + 8), high[r]);
    }
    _mm256_storeu_ps(at, low[r]);
    _mm256_storeu_ps(at + 8, high[r]);
  }
}

/// Rows of 8 lanes become columns.
void TransposeLanes(__m256 (&rows)[8]) {
  __m256 pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      fours[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
      fours[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xee);
    }
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

#else

template <int kRows>
void SumRowsOfTerms(const TermProduct& product, bool adds, float* sums) {
  for (int r = 0; r < kRows; ++r) {
    for (std::int64_t j = 0; j < kPanel; ++j) {
      float sum = 0;
      for (const Term& term : product.terms) {
        sum = std::fma(product.block[term.left + r], product.panel[term.right + j], sum);
      }
      float& result = sums[r * kPanel + j];
      result = adds ? result + sum : sum;
    }
  }
}

#endif

}  // namespace

void SumTerms(const TermProduct& product, bool adds, float* sums) {
  static_assert(kBlockRows == 6);
  switch (product.rows) {
    case 6:
      return SumRowsOfTerms<6>(product, adds, sums);
    case 5:
      return SumRowsOfTerms<5>(product, adds, sums);
    case 4:
      return SumRowsOfTerms<4>(product, adds, sums);
    case 3:
      return SumRowsOfTerms<3>(product, adds, sums);
    case 2:
      return SumRowsOfTerms<2>(product, adds, sums);
    default:
      return SumRowsOfTerms<1>(product, adds, sums);
  }
}

void TransposeEightRows(const float* const (&rows)[8], float* to, std::int64_t stride) {
#ifdef __FMA__
  for (std::int64_t half = 0; half < kPanel; half += 8) {
    __m256 lanes[8];
    for (int i = 0; i < 8; ++i) lanes[i] = _mm256_loadu_ps(rows[i] + half);
    TransposeLanes(lanes);
    for (int i = 0; i < 8; ++i) _mm256_storeu_ps(to + (half + i) * stride, lanes[i]);
  }
#else
  for (std::int64_t j = 0; j < kPanel; ++j) {
    for (std::int64_t i = 0; i < 8; ++i) to[j * stride + i] = rows[i][j];
  }
#endif
}

}  // namespace mpc::cpu
