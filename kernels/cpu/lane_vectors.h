// Vectors of floats of two levels of the processor under the same names, for loops that are written once. Such loops
// are a file of their own (`*_loops.inc`), which loops_by_level.inc includes in a namespace for each level. There
// `Vector` is the level's, and MPC_LOOP what its functions are compiled for.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace mpc::cpu {

/// Whether the processor has AVX-512, and oneDNN may use it, too (ONEDNN_MAX_CPU_ISA). A test so takes the other level.
bool HasAvx512();
/// Whether the processor has AVX2 and fused multiply-adds.
bool HasAvx2();

#define MPC_FOR_AVX512 [[gnu::target("avx512f")]]
#define MPC_FOR_AVX2 [[gnu::target("avx2,fma")]]

/// 16 floats. Callers are compiled for MPC_FOR_AVX512, and run where `HasAvx512()`.
struct Avx512Vector {
#define MPC_VECTOR MPC_FOR_AVX512 [[gnu::always_inline]] static inline
  static constexpr std::int64_t kLanes = 16;
  static constexpr int kRegisters = 32;
  using Floats = __m512;
  using Places = __m512i;  ///< the lane that each lane of a permutation takes
  using Lanes = __mmask16;

  /// The first `count` lanes, at most all.
  MPC_VECTOR Lanes FirstLanes(std::int64_t count) {
    return count >= kLanes ? Lanes{0xffff} : static_cast<Lanes>((1u << count) - 1u);
  }

  MPC_VECTOR Floats Broadcast(const float* x) { return _mm512_set1_ps(*x); }
  MPC_VECTOR Floats Load(const float* x) { return _mm512_loadu_ps(x); }
  MPC_VECTOR Floats Load(const float* x, Lanes lanes) { return _mm512_maskz_loadu_ps(lanes, x); }
  MPC_VECTOR Places LoadPlaces(const std::int32_t* places) { return _mm512_loadu_si512(places); }
  // With a mask of all lanes, which costs nothing: GCC 12 warns of the plain form's own undefined operand.
  MPC_VECTOR Floats Permute(Places places, Floats x) { return _mm512_maskz_permutexvar_ps(0xffff, places, x); }
  MPC_VECTOR Floats Permute(Places places, Floats x, Lanes lanes) {
    return _mm512_maskz_permutexvar_ps(lanes, places, x);
  }
  MPC_VECTOR Floats MultiplyAdd(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  MPC_VECTOR void Store(float* y, Floats x) { _mm512_storeu_ps(y, x); }
  MPC_VECTOR void Store(float* y, Floats x, Lanes lanes) { _mm512_mask_storeu_ps(y, lanes, x); }
  MPC_VECTOR void Merge(float* y, Floats x, Lanes lanes) { _mm512_mask_storeu_ps(y, lanes, x); }
};

/// 8 floats. Callers are compiled for MPC_FOR_AVX2, and run where `HasAvx2()`.
struct Avx2Vector {
#undef MPC_VECTOR
#define MPC_VECTOR MPC_FOR_AVX2 [[gnu::always_inline]] static inline
  static constexpr std::int64_t kLanes = 8;
  static constexpr int kRegisters = 16;
  using Floats = __m256;
  using Places = __m256i;  ///< the lane that each lane of a permutation takes
  using Lanes = __m256i;

  /// The first `count` lanes, at most all.
  MPC_VECTOR Lanes FirstLanes(std::int64_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
  }

  MPC_VECTOR Floats Broadcast(const float* x) { return _mm256_broadcast_ss(x); }
  MPC_VECTOR Floats Load(const float* x) { return _mm256_loadu_ps(x); }
  /// Reads nothing behind `lanes`. The other lanes are zeros.
  MPC_VECTOR Floats Load(const float* x, Lanes lanes) { return _mm256_maskload_ps(x, lanes); }
  MPC_VECTOR Places LoadPlaces(const std::int32_t* places) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places));
  }
  MPC_VECTOR Floats Permute(Places places, Floats x) { return _mm256_permutevar8x32_ps(x, places); }
  /// Lanes that are not of `lanes` are zeros.
  MPC_VECTOR Floats Permute(Places places, Floats x, Lanes lanes) {
    return _mm256_and_ps(Permute(places, x), _mm256_castsi256_ps(lanes));
  }
  MPC_VECTOR Floats MultiplyAdd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  MPC_VECTOR void Store(float* y, Floats x) { _mm256_storeu_ps(y, x); }
  /// Writes nothing behind `lanes`. Stores under a mask are slow on some processors, so that whole vectors have none.
  MPC_VECTOR void Store(float* y, Floats x, Lanes lanes) {
    if (_mm256_movemask_ps(_mm256_castsi256_ps(lanes)) == 0xff) return Store(y, x);
    _mm256_maskstore_ps(y, lanes, x);
  }
  /// Stores `lanes`. Memory of the other lanes may be read, and written with what it holds.
  MPC_VECTOR void Merge(float* y, Floats x, Lanes lanes) {
    Store(y, _mm256_blendv_ps(Load(y), x, _mm256_castsi256_ps(lanes)));
  }
#undef MPC_VECTOR
};

/// Whether the processor has one of the levels.
inline bool HasLanes() { return HasAvx512() || HasAvx2(); }

/// use(Avx512{}) or use(Avx2{}), what a file of loops defines for the level that the processor has.
template <typename Avx512, typename Avx2, typename Use>
auto OnLevel(const Use& use) {
  return HasAvx512() ? use(Avx512{}) : use(Avx2{});
}

}  // namespace mpc::cpu
