#include "tools/mpc-bench/vector_loops.h"

#include <immintrin.h>

#include "kernels/cpu/tiles.h"
#include "runtime/cpu/cpu_features.h"

namespace mpc::tools {
namespace {

// Enough independent sums to hide the latency of a multiply-add (4 cycles, two a cycle), few enough to stay in
// registers.
constexpr int kSums = 12;
// Their product stays near 1, so that no number becomes infinite or subnormal.
constexpr float kFactor = 0.9999F;
constexpr float kTerm = 0.0001F;

__attribute__((target("avx2,fma"))) float Avx2Loop(std::int64_t rounds) {
  __m256 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_set1_ps(1.0F + static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(kFactor);
  const __m256 term = _mm256_set1_ps(kTerm);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  }
  float total = 0;
  for (const __m256& sum : sums) total += _mm256_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx512f"))) float Avx512Loop(std::int64_t rounds) {
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(1.0F + static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(kFactor);
  const __m512 term = _mm512_set1_ps(kTerm);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
  }
  float total = 0;
  for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx512f,avx512bf16"))) float Bf16Loop(std::int64_t rounds) {
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  // Pairs of zero and a small number: the sums hardly grow.
  const auto pairs = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x2e80));
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], pairs, pairs);
  }
  float total = 0;
  for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

// Tiles of 16 rows of 64 bytes: 16 x 16 sums, 16 x 32 and 32 x 16 factors. Two of the eight hold factors.
constexpr int kTileSums = 6;
constexpr double kTileFlops = 2.0 * 16 * 16 * 32;

__attribute__((target("amx-tile,amx-bf16"))) float TileLoop(std::int64_t rounds) {
  const cpu::TileScope scope;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  return 0;
}

__attribute__((target("avx2"))) void StreamCopyAvx2(const std::byte* from, std::byte* to, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) {
    const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i*>(from + i + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i + 32), high);
  }
  _mm_sfence();
}

}  // namespace

void StreamCopy(const std::byte* from, std::byte* to, std::size_t bytes) { StreamCopyAvx2(from, to, bytes); }

MultiplyAddLoop FindMultiplyAddLoop(DType dtype) {
  constexpr double kF32Lanes = 16;
  if (dtype == DType::kBF16 && cpu::HasTiles()) return {TileLoop, kTileFlops * kTileSums, "amx_bf16"};
  if (dtype == DType::kBF16 && runtime::HasAvx512Bf16()) {
    // Two products and two additions in each lane.
    return {Bf16Loop, 4 * kF32Lanes * kSums, "avx512_bf16"};
  }
  if (runtime::HasCpuFeature("avx512f")) return {Avx512Loop, 2 * kF32Lanes * kSums, "avx512f"};
  return {Avx2Loop, kF32Lanes * kSums, "avx2 and fma"};
}

}  // namespace mpc::tools
