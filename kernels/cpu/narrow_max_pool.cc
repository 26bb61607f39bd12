#include "kernels/cpu/narrow_max_pool.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_permutation.h"

namespace mpc::cpu {
namespace {

/// The most columns of a window.
constexpr std::int64_t kMaxWindow = 3;

bool IsNarrow(const PoolGeometry& geometry) {
  const Window& w = geometry.window;
  const std::array<std::int64_t, 2> none{0, 0};
  return HasLanes() && geometry.inner > 1 && geometry.inner <= kLanes && w.pad_begin == none && w.pad_end == none &&
         w.dilation == std::array<std::int64_t, 2>{1, 1} && w.kernel[1] <= kMaxWindow &&
         w.input[1] * geometry.inner <= kMaxRow;
}

std::int64_t Vectors(std::int64_t count) { return (count + kLanes - 1) / kLanes; }

/// One row of results, with AVX-512: rows are rearranged, so that no lane is empty.
class PooledRow {
 public:
  explicit PooledRow(const PoolGeometry& geometry) : geometry_(geometry) {
    const Window& w = geometry.window;
    const std::int64_t inner = geometry.inner, length = w.output[1] * inner;
    for (std::int64_t v = 0; v < w.kernel[1]; ++v) {
      std::vector<std::int64_t> from;
      for (std::int64_t i = 0; i < length; ++i) {
        from.push_back((i / inner * w.stride[1] + v) * inner + i % inner);
      }
      columns_.emplace_back(from, w.input[1] * inner);
    }
  }

  bool fits() const {
    return std::all_of(columns_.begin(), columns_.end(), [](const RowPermutation& p) { return p.fits(); });
  }
  std::int64_t length() const { return geometry_.window.output[1] * geometry_.inner; }

  /// The largest values of row `row` of `image` and, unless null, where in their windows they lie. The first of equals
  /// stays; the first NaN wins.
  template <typename Index>
  [[gnu::target("avx512f")]] void Run(Source x, std::int64_t image, std::int64_t row, float* largest,
                                      Index* indices) const {
    const Window& w = geometry_.window;
    const std::int64_t row_length = w.input[1] * geometry_.inner;
    // ---- Rows under the windows, in f32
    const float* rows[kMaxWindow];
    alignas(64) float buffers[kMaxWindow][kMaxRow];
    for (std::int64_t u = 0; u < w.kernel[0]; ++u) {
      const std::int64_t offset = image * geometry_.input_image() + (row * w.stride[0] + u) * row_length;
      rows[u] = x.Load(offset, row_length, buffers[u]);
    }
    // ---- Maxima of a vector of results
    for (std::int64_t vector = 0; vector < Vectors(length()); ++vector) {
      const auto slot = static_cast<std::size_t>(vector);
      __m512 best = _mm512_setzero_ps();
      __m512i from = _mm512_setzero_si512();
      for (std::int64_t u = 0; u < w.kernel[0]; ++u) {
        for (std::size_t v = 0; v < columns_.size(); ++v) {
          const __m512 candidate =
              _mm512_castsi512_ps(columns_[v].Take(reinterpret_cast<const std::int32_t*>(rows[u]), slot));
          const __m512i place = _mm512_set1_epi32(static_cast<int>(u * w.kernel[1] + static_cast<std::int64_t>(v)));
          // A value wins if it is larger or the first NaN, that is, not less or equal. Lanes that hold a NaN already
          // keep it.
          const __mmask16 numbers = _mm512_cmp_ps_mask(best, best, _CMP_ORD_Q);
          const __mmask16 larger = _mm512_mask_cmp_ps_mask(numbers, candidate, best, _CMP_NLE_UQ);
          const bool first = u == 0 && v == 0;
          const __mmask16 wins = first ? __mmask16{0xffff} : larger;
          best = _mm512_mask_mov_ps(best, wins, candidate);
          from = _mm512_mask_mov_epi32(from, wins, place);
        }
      }
      const __mmask16 lanes = FirstLanes(length() - vector * kLanes);
      _mm512_mask_storeu_ps(largest + vector * kLanes, lanes, best);
      if (indices == nullptr) continue;
      if constexpr (sizeof(Index) == 1) {
        _mm512_mask_cvtepi32_storeu_epi8(indices + vector * kLanes, lanes, from);
      } else {
        _mm512_mask_storeu_epi32(indices + vector * kLanes, lanes, from);
      }
    }
  }

 private:
  PoolGeometry geometry_;
  std::vector<RowPermutation> columns_;  ///< one a column of the window
};

/// One row of results, with AVX2: a vector holds channels of one pixel.
class PooledPixels {
 public:
  explicit PooledPixels(const PoolGeometry& geometry) : geometry_(geometry) {}

  bool fits() const { return length() + kLanesOfPixel <= kMaxRow; }
  std::int64_t length() const { return geometry_.window.output[1] * geometry_.inner; }

  /// As PooledRow::Run.
  template <typename Index>
  MPC_FOR_AVX2 void Run(Source x, std::int64_t image, std::int64_t row, float* largest, Index* indices) const {
    const Window& w = geometry_.window;
    const std::int64_t inner = geometry_.inner, row_length = w.input[1] * inner;
    // ---- Rows under the windows, in f32
    const float* rows[kMaxWindow];
    alignas(64) float buffers[kMaxWindow][kMaxRow];
    for (std::int64_t u = 0; u < w.kernel[0]; ++u) {
      const std::int64_t offset = image * geometry_.input_image() + (row * w.stride[0] + u) * row_length;
      rows[u] = x.Load(offset, row_length, buffers[u]);
    }
    // ---- Maxima. Lanes behind a pixel's channels are overwritten by the next one.
    alignas(64) float best[kMaxRow];
    alignas(64) std::int32_t from[kMaxRow];
    for (std::int64_t column = 0; column < w.output[1]; ++column) {
      for (std::int64_t channel = 0; channel < inner; channel += kLanesOfPixel) {
        const __m256i lanes = Avx2Vector::FirstLanes(inner - channel);
        const std::int64_t at = column * inner + channel;
        StoreLargest(rows, column * w.stride[1] * inner + channel, lanes, best + at, from + at);
      }
    }
    std::copy_n(best, length(), largest);
    if (indices != nullptr) std::copy_n(from, length(), indices);
  }

 private:
  static constexpr std::int64_t kLanesOfPixel = Avx2Vector::kLanes;

  /// The largest values of some channels of one window, which begins at element `first` of the rows.
  MPC_FOR_AVX2 void StoreLargest(const float* const* rows, std::int64_t first, __m256i lanes, float* largest,
                                 std::int32_t* winners) const {
    const Window& w = geometry_.window;
    __m256 best = Avx2Vector::Load(rows[0] + first, lanes);
    __m256i from = _mm256_setzero_si256();
    for (std::int64_t u = 0; u < w.kernel[0]; ++u) {
      for (std::int64_t v = u == 0 ? 1 : 0; v < w.kernel[1]; ++v) {
        const __m256 candidate = Avx2Vector::Load(rows[u] + first + v * geometry_.inner, lanes);
        // As PooledRow does: a value wins if it is larger or the first NaN.
        const __m256 wins =
            _mm256_and_ps(_mm256_cmp_ps(best, best, _CMP_ORD_Q), _mm256_cmp_ps(candidate, best, _CMP_NLE_UQ));
        const __m256i place = _mm256_set1_epi32(static_cast<int>(u * w.kernel[1] + v));
        best = _mm256_blendv_ps(best, candidate, wins);
        from = _mm256_blendv_epi8(from, place, _mm256_castps_si256(wins));
      }
    }
    Avx2Vector::Store(largest, best);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(winners), from);
  }

  PoolGeometry geometry_;
};

template <typename Index, typename Pooled>
std::unique_ptr<Kernel> MakeKernelFor(const KernelSpec& spec, const PoolGeometry& geometry, Pooled pooled) {
  return *MakeKernel([geometry, pooled = std::move(pooled), in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                      uses_y = spec.uses(0),
                      uses_indices = spec.outputs.size() > 1 && spec.uses(1)](const KernelOperands& operands) {
    const Source x{in, operands.inputs[0]};
    const std::int64_t rows = geometry.window.output[0];
    const std::int64_t work = geometry.outer * geometry.input_image();
    ParallelFor(geometry.outer * rows, work, [&](std::int64_t task) {
      alignas(64) float buffer[kMaxRow];
      const std::int64_t offset = task * pooled.length();
      const Sink y{out, operands.outputs[0]};
      float* largest = uses_y ? y.Target(offset, buffer) : buffer;
      Index* indices = uses_indices ? static_cast<Index*>(operands.outputs[1]) + offset : nullptr;
      pooled.Run(x, task / rows, task % rows, largest, indices);
      if (uses_y) y.Commit(offset, pooled.length(), largest);
    });
  });
}

template <typename Pooled>
std::unique_ptr<Kernel> MakeWith(const KernelSpec& spec, const PoolGeometry& geometry) {
  Pooled pooled(geometry);
  if (!pooled.fits()) return nullptr;
  const bool wide = spec.outputs.size() > 1 && spec.outputs[1].dtype == DType::kI32;
  return wide ? MakeKernelFor<std::int32_t>(spec, geometry, std::move(pooled))
              : MakeKernelFor<std::int8_t>(spec, geometry, std::move(pooled));
}

}  // namespace

std::unique_ptr<Kernel> MakeNarrowMaxPool(const KernelSpec& spec, const PoolGeometry& geometry) {
  if (!IsNarrow(geometry) || geometry.window.kernel[0] > kMaxWindow) return nullptr;
  return HasAvx512() ? MakeWith<PooledRow>(spec, geometry) : MakeWith<PooledPixels>(spec, geometry);
}

}  // namespace mpc::cpu
