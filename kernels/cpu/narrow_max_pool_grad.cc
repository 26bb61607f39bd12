// The gradient of max_pool2d where no two windows share a pixel. A vector of dx takes the gradients and indices of its
// windows by permutations. It keeps the lanes whose index names them. Bits are copied.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cpu/narrow_max_pool.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_permutation.h"

namespace mpc::cpu {
namespace {

using WidenedRow = std::array<std::int32_t, kMaxRow>;

/// Marks pixels outside all windows. It is never the index of a window's element, nor -1, the index of a window without
/// a winner.
constexpr std::int32_t kNowhere = -1 << 30;

/// `count` values of 32 bits. They stay where they lie if they have 32 bits, else they are widened into `row`.
template <typename T>
const std::int32_t* Widened(const T* values, std::int64_t count, WidenedRow& row) {
  if constexpr (sizeof(T) == 4) {
    return reinterpret_cast<const std::int32_t*>(values);
  } else {
    std::copy_n(values, count, row.data());
    return row.data();
  }
}

/// Clears the rows of dx [image] that no window meets.
template <typename Word>
void ClearOthers(const PoolGeometry& geometry, Word* dx) {
  const Window& w = geometry.window;
  const std::int64_t length = w.input[1] * geometry.inner;
  for (std::int64_t row = 0; row < w.input[0]; ++row) {
    const std::int64_t padded = row + w.pad_begin[0];
    if (padded % w.stride[0] < w.kernel[0] && padded / w.stride[0] < w.output[0]) continue;
    std::fill_n(dx + row * length, length, Word{0});
  }
}

/// The gradient of one row of results, with AVX-512: rows are rearranged, so that no lane is empty.
class ScatteredRow {
 public:
  explicit ScatteredRow(const PoolGeometry& geometry)
      : geometry_(geometry), columns_(Sources(geometry), geometry.window.output[1] * geometry.inner) {
    const Window& w = geometry.window;
    for (std::int64_t i = 0; i < row_length(); ++i) {
      const std::int64_t column = i / geometry.inner + w.pad_begin[1];
      const std::int64_t place = column % w.stride[1];
      const bool is_met = place < w.kernel[1] && column / w.stride[1] < w.output[1];
      place_.push_back(is_met ? static_cast<std::int32_t>(place) : kNowhere);
    }
    place_.resize(static_cast<std::size_t>((row_length() + kLanes - 1) / kLanes * kLanes), kNowhere);
  }

  bool fits() const { return columns_.fits(); }

  /// Computes the rows of dx [image] that only result row `row` reaches.
  template <typename Word, typename Index>
  [[gnu::target("avx512f")]] void Run(const Word* dy, const Index* indices, std::int64_t row, Word* dx) const {
    const Window& w = geometry_.window;
    const std::int64_t results = w.output[1] * geometry_.inner;
    WidenedRow cotangent_row, index_row;
    const std::int32_t* cotangents = Widened(dy + row * results, results, cotangent_row);
    const std::int32_t* winners = Widened(indices + row * results, results, index_row);
    const std::int64_t top = row * w.stride[0] - w.pad_begin[0];
    const std::int64_t begin = std::max<std::int64_t>(0, -top), end = std::min(w.kernel[0], w.input[0] - top);
    for (std::int64_t at = 0; at < row_length(); at += kLanes) {
      const auto vector = static_cast<std::size_t>(at / kLanes);
      const __m512i values = columns_.Take(cotangents, vector), winner = columns_.Take(winners, vector);
      const __m512i place = _mm512_loadu_si512(place_.data() + at);
      const __mmask16 lanes = FirstLanes(row_length() - at);
      for (std::int64_t u = begin; u < end; ++u) {
        const __m512i here = _mm512_add_epi32(place, _mm512_set1_epi32(static_cast<int>(u * w.kernel[1])));
        const __m512i won = _mm512_maskz_mov_epi32(_mm512_cmpeq_epi32_mask(winner, here), values);
        Word* to = dx + (top + u) * row_length() + at;
        if constexpr (sizeof(Word) == 4) {
          _mm512_mask_storeu_epi32(to, lanes, won);
        } else {
          _mm512_mask_cvtepi32_storeu_epi16(to, lanes, won);
        }
      }
    }
  }

 private:
  std::int64_t row_length() const { return geometry_.window.input[1] * geometry_.inner; }

  /// The result that each value of a row of dx belongs to. Any result where there is none.
  static std::vector<std::int64_t> Sources(const PoolGeometry& geometry) {
    const Window& w = geometry.window;
    std::vector<std::int64_t> from;
    for (std::int64_t i = 0; i < w.input[1] * geometry.inner; ++i) {
      const std::int64_t result = (i / geometry.inner + w.pad_begin[1]) / w.stride[1];
      from.push_back(std::min(result, w.output[1] - 1) * geometry.inner + i % geometry.inner);
    }
    return from;
  }

  PoolGeometry geometry_;
  RowPermutation columns_;
  std::vector<std::int32_t> place_;  ///< for each value of a row of dx, its column in the window; whole vectors
};

/// The gradient of one row of results, with AVX2: a vector holds channels of one pixel.
class ScatteredPixels {
 public:
  explicit ScatteredPixels(const PoolGeometry& geometry) : geometry_(geometry) {}

  bool fits() const { return geometry_.inner > 1 && row_length() + kLanesOfPixel <= kMaxRow; }

  /// As ScatteredRow::Run.
  template <typename Word, typename Index>
  MPC_FOR_AVX2 void Run(const Word* dy, const Index* indices, std::int64_t row, Word* dx) const {
    const Window& w = geometry_.window;
    const std::int64_t results = w.output[1] * geometry_.inner;
    WidenedRow cotangent_row, index_row;
    const std::int32_t* const cotangents = Widened(dy + row * results, results, cotangent_row);
    const std::int32_t* const winners = Widened(indices + row * results, results, index_row);
    const std::int64_t top = row * w.stride[0] - w.pad_begin[0];
    const std::int64_t begin = std::max<std::int64_t>(0, -top), end = std::min(w.kernel[0], w.input[0] - top);
    for (std::int64_t u = begin; u < end; ++u) {
      WidenedRow line;
      std::fill_n(line.data(), row_length() + kLanesOfPixel, 0);
      for (std::int64_t column = 0; column < w.output[1]; ++column) Scatter(cotangents, winners, column, u, line);
      std::copy_n(line.data(), row_length(), dx + (top + u) * row_length());
    }
  }

 private:
  static constexpr std::int64_t kLanesOfPixel = Avx2Vector::kLanes;

  std::int64_t row_length() const { return geometry_.window.input[1] * geometry_.inner; }

  /// Row `u` of the window of one result. Lanes behind a pixel's channels are zeros, which the next pixel overwrites.
  MPC_FOR_AVX2 void Scatter(const std::int32_t* cotangents, const std::int32_t* winners, std::int64_t result,
                            std::int64_t u, WidenedRow& line) const {
    const Window& w = geometry_.window;
    const std::int64_t inner = geometry_.inner;
    for (std::int64_t v = 0; v < w.kernel[1]; ++v) {
      const std::int64_t column = result * w.stride[1] - w.pad_begin[1] + v;
      if (column < 0 || column >= w.input[1]) continue;
      const __m256i here = _mm256_set1_epi32(static_cast<int>(u * w.kernel[1] + v));
      for (std::int64_t channel = 0; channel < inner; channel += kLanesOfPixel) {
        const __m256i lanes = Avx2Vector::FirstLanes(inner - channel);
        const std::int64_t from = result * inner + channel;
        const __m256i values = _mm256_maskload_epi32(cotangents + from, lanes);
        const __m256i won = _mm256_cmpeq_epi32(_mm256_maskload_epi32(winners + from, lanes), here);
        // Values of the lanes behind are zeros.
        auto* const to = reinterpret_cast<__m256i*>(line.data() + column * inner + channel);
        _mm256_storeu_si256(to, _mm256_and_si256(values, won));
      }
    }
  }

  PoolGeometry geometry_;
};

template <typename Word, typename Index, typename Scattered>
std::unique_ptr<Kernel> MakeKernelFor(const PoolGeometry& geometry, const Scattered& scattered) {
  return *MakeKernel([geometry, scattered](const KernelOperands& operands) {
    const auto* dy = static_cast<const Word*>(operands.inputs[0]);
    const auto* indices = static_cast<const Index*>(operands.inputs[1]);
    auto* dx = static_cast<Word*>(operands.outputs[0]);
    ParallelFor(geometry.outer, geometry.outer * geometry.input_image(), [&](std::int64_t image) {
      const std::int64_t results = image * geometry.output_image();
      Word* target = dx + image * geometry.input_image();
      for (std::int64_t row = 0; row < geometry.window.output[0]; ++row) {
        scattered.Run(dy + results, indices + results, row, target);
      }
      ClearOthers(geometry, target);
    });
  });
}

template <typename Scattered>
std::unique_ptr<Kernel> MakeWith(const KernelSpec& spec, const PoolGeometry& geometry) {
  const Scattered scattered(geometry);
  if (!scattered.fits()) return nullptr;
  const bool is_f32 = spec.outputs[0].dtype == DType::kF32, has_wide_indices = spec.inputs[1].dtype == DType::kI32;
  if (is_f32) {
    return has_wide_indices ? MakeKernelFor<std::uint32_t, std::int32_t>(geometry, scattered)
                            : MakeKernelFor<std::uint32_t, std::int8_t>(geometry, scattered);
  }
  return has_wide_indices ? MakeKernelFor<std::uint16_t, std::int32_t>(geometry, scattered)
                          : MakeKernelFor<std::uint16_t, std::int8_t>(geometry, scattered);
}

}  // namespace

std::unique_ptr<Kernel> MakeNarrowMaxPoolGrad(const KernelSpec& spec, const PoolGeometry& geometry) {
  const Window& w = geometry.window;
  const bool is_narrow = HasLanes() && geometry.disjoint() && w.dilation == std::array<std::int64_t, 2>{1, 1} &&
                         std::max(w.input[1], w.output[1]) * geometry.inner <= kMaxRow;
  if (!is_narrow || spec.inputs[0].dtype != spec.outputs[0].dtype) return nullptr;
  return HasAvx512() ? MakeWith<ScatteredRow>(spec, geometry) : MakeWith<ScatteredPixels>(spec, geometry);
}

}  // namespace mpc::cpu
