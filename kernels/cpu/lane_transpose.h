// The transpose of 16 rows of 16 lanes of 32 bits, in registers.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdint>

namespace mpc::cpu {

/// For two rows that lie `kStep` apart. Of each 2 * kStep lanes the second half of `a` changes places with the first
/// half of `b`.
template <int kStep>
[[gnu::target("avx512f")]] inline void ExchangeLanes(__m512i& a, __m512i& b) {
  struct Lanes {
    alignas(64) std::int32_t of_a[16], of_b[16];
  };
  static constexpr Lanes kLanes = [] {
    Lanes lanes{};
    for (int j = 0; j < 16; ++j) {
      const bool is_second = (j & kStep) != 0;
      lanes.of_a[j] = is_second ? 16 + j - kStep : j;
      lanes.of_b[j] = is_second ? 16 + j : j + kStep;
    }
    return lanes;
  }();
  const __m512i first = a;
  a = _mm512_permutex2var_epi32(first, _mm512_load_si512(kLanes.of_a), b);
  b = _mm512_permutex2var_epi32(first, _mm512_load_si512(kLanes.of_b), b);
}

/// A step of the transpose. After those of 1, 2, 4 and 8 it is done.
template <int kStep>
[[gnu::target("avx512f")]] inline void TransposeStep(__m512i (&rows)[16]) {
  for (int i = 0; i < 16; ++i) {
    if ((i & kStep) == 0) ExchangeLanes<kStep>(rows[i], rows[i + kStep]);
  }
}

/// Lane j of row i changes places with lane i of row j.
[[gnu::target("avx512f")]] inline void TransposeLanes(__m512i (&rows)[16]) {
  TransposeStep<1>(rows);
  TransposeStep<2>(rows);
  TransposeStep<4>(rows);
  TransposeStep<8>(rows);
}

}  // namespace mpc::cpu

#endif
