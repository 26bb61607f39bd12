#include "frontend/data/vision/resampling.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision::internal {
namespace {

/// Keys' cubic convolution kernel with parameter `a` (Keys 1981). OpenCV takes -0.75, Pillow -0.5.
double Cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double Triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// Rounds a value of a u8 picture. It is not negative, so that cutting its fraction off is rounding down.
float RoundToU8(float value) { return static_cast<float>(static_cast<int>(std::clamp(value, 0.0f, 255.0f) + 0.5f)); }

/// The channels of a pixel of colour, and a value that counts for nothing; or four values of a row.
using Quad = __m128;
constexpr std::int64_t kColours = 3;

template <typename T>
Quad QuadOf(const T* pixel) {
  if constexpr (std::is_same_v<T, float>) {
    return Quad{pixel[0], pixel[1], pixel[2], 0};
  } else {
    const int bytes = pixel[0] | pixel[1] << 8 | pixel[2] << 16;
    const __m128i zero = _mm_setzero_si128();
    const __m128i words = _mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), zero);
    return _mm_cvtepi32_ps(_mm_unpacklo_epi16(words, zero));
  }
}

Quad RoundToU8(Quad values) {
  values = _mm_min_ps(_mm_max_ps(values, _mm_setzero_ps()), _mm_set1_ps(255));
  return _mm_cvtepi32_ps(_mm_cvttps_epi32(values + _mm_set1_ps(0.5f)));
}

/// Pixels of colour at one place of neighbouring rows, which have the same weights.
struct PixelColumn {
  static constexpr std::int64_t kRows = 4;
  Quad rows[kRows] = {};
};

template <typename T>
void ResampleRowsOfColour(const T* source, const Extents& extents, const Taps& columns, bool round, float* result) {
  std::vector<PixelColumn> pixels(static_cast<std::size_t>(extents.width));
  for (std::int64_t y = 0; y < extents.height; y += PixelColumn::kRows) {
    const std::int64_t rows = std::min(extents.height - y, PixelColumn::kRows);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* pixel = source + (y + r) * extents.width * kColours;
      for (PixelColumn& column : pixels) {
        column.rows[r] = QuadOf(pixel);
        pixel += kColours;
      }
    }
    for (std::int64_t x = 0; x < columns.size(); ++x) {
      const Taps::Place place = columns[x];
      const PixelColumn* column = pixels.data() + place.first;
      PixelColumn sum;
      for (const float weight : place.weights) {
        for (std::int64_t r = 0; r < PixelColumn::kRows; ++r) sum.rows[r] += weight * column->rows[r];
        ++column;
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const Quad value = round ? RoundToU8(sum.rows[r]) : sum.rows[r];
        std::memcpy(result + ((y + r) * columns.size() + x) * kColours, &value, kColours * sizeof(float));
      }
    }
  }
}

template <typename T>
void ResampleRowsOfAny(const T* source, const Extents& extents, const Taps& columns, bool round, float* result) {
  for (std::int64_t y = 0; y < extents.height; ++y) {
    const T* row = source + y * extents.width * extents.channels;
    for (std::int64_t x = 0; x < columns.size(); ++x) {
      const Taps::Place place = columns[x];
      for (std::int64_t c = 0; c < extents.channels; ++c) {
        float sum = 0;
        const T* pixel = row + place.first * extents.channels + c;
        for (const float weight : place.weights) {
          sum += weight * static_cast<float>(*pixel);
          pixel += extents.channels;
        }
        *result++ = round ? RoundToU8(sum) : sum;
      }
    }
  }
}

/// Resamples each row of `source`, [rows, columns.from, channels].
template <typename T>
std::vector<float> ResampleRows(absl::Span<const T> source, const Extents& extents, const Taps& columns, bool round) {
  std::vector<float> result(static_cast<std::size_t>(extents.height * columns.size() * extents.channels));
  const auto resample = extents.channels == kColours ? ResampleRowsOfColour<T> : ResampleRowsOfAny<T>;
  resample(source.data(), extents, columns, round, result.data());
  return result;
}

void StorePixel(float value, float* target) { *target = value; }
void StorePixel(float value, std::uint8_t* target) { *target = static_cast<std::uint8_t>(RoundToU8(value)); }

/// Neighbouring values of a row, whose sums stay in registers.
struct Run {
  static constexpr std::int64_t kQuads = 4;
  static constexpr std::int64_t kValues = 4 * kQuads;
  Quad quads[kQuads] = {};
};

void StoreRun(const Run& run, float* target) { std::memcpy(target, run.quads, sizeof(run.quads)); }
void StoreRun(const Run& run, std::uint8_t* target) {
  const auto round = [&run](int i) { return _mm_cvttps_epi32(run.quads[i] + _mm_set1_ps(0.5f)); };
  // Both conversions clamp.
  const __m128i low = _mm_packs_epi32(round(0), round(1)), high = _mm_packs_epi32(round(2), round(3));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm_packus_epi16(low, high));
}

template <typename T>
void ResampleColumns(const std::vector<float>& source, std::int64_t row_size, const Taps& rows, T* target) {
  for (std::int64_t y = 0; y < rows.size(); ++y, target += row_size) {
    const Taps::Place place = rows[y];
    const float* const first = source.data() + place.first * row_size;
    std::int64_t x = 0;
    for (; x + Run::kValues <= row_size; x += Run::kValues) {
      Run sums;
      const float* row = first + x;
      for (const float weight : place.weights) {
        for (int i = 0; i < Run::kQuads; ++i) sums.quads[i] += weight * _mm_loadu_ps(row + 4 * i);
        row += row_size;
      }
      StoreRun(sums, target + x);
    }
    for (; x < row_size; ++x) {
      float sum = 0;
      const float* row = first + x;
      for (const float weight : place.weights) {
        sum += weight * *row;
        row += row_size;
      }
      StorePixel(sum, target + x);
    }
  }
}

template <typename T>
Tensor ResampleAs(const Tensor& image, const Extents& extents, const Taps& rows, const Taps& columns, bool round) {
  TensorSpec spec = WithExtents(image, rows.size(), columns.size());
  mpc::runtime::AlignedBuffer buffer(spec.bytes());
  const std::vector<float> narrow = ResampleRows(image.data<T>(), extents, columns, round);
  ResampleColumns(narrow, columns.size() * extents.channels, rows, reinterpret_cast<T*>(buffer.data()));
  return mpc::internal::MakeConcrete(std::move(spec), std::move(buffer));
}

}  // namespace

std::vector<double> CubicWeights(double fraction) {
  constexpr double kOpenCv = -0.75;
  std::vector<double> weights;
  for (int i = -1; i <= 2; ++i) weights.push_back(Cubic(fraction - i, kOpenCv));
  return weights;
}

Taps::Taps(std::int64_t from, std::int64_t to, Inter interpolation, bool antialias) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t place = 0; place < to; ++place) {
    const double centre = (static_cast<double>(place) + 0.5) * scale;
    if (interpolation == Inter::kNearest) {
      const double position = antialias ? centre : static_cast<double>(place) * scale;
      Add(std::min(static_cast<std::int64_t>(position), from - 1), std::array{1.0});
    } else if (!antialias) {
      const double left = std::floor(centre - 0.5);
      const double fraction = centre - 0.5 - left;
      const auto first = static_cast<std::int64_t>(left);
      if (interpolation == Inter::kBilinear) {
        AddRepeatingEdges(from, first, std::array{1 - fraction, fraction});
      } else {
        AddRepeatingEdges(from, first - 1, CubicWeights(fraction));
      }
    } else {
      constexpr double kPillow = -0.5;
      const double stretch = std::max(scale, 1.0);
      const double support = (interpolation == Inter::kBilinear ? 1 : 2) * stretch;
      const auto first = std::max(static_cast<std::int64_t>(std::floor(centre - support + 0.5)), std::int64_t{0});
      const auto last = std::min(static_cast<std::int64_t>(std::floor(centre + support + 0.5)), from);
      std::vector<double> weights;
      for (std::int64_t source = first; source < last; ++source) {
        const double distance = (static_cast<double>(source) + 0.5 - centre) / stretch;
        weights.push_back(interpolation == Inter::kBilinear ? Triangle(distance) : Cubic(distance, kPillow));
      }
      double sum = 0;
      for (const double weight : weights) sum += weight;
      for (double& weight : weights) weight /= sum;
      Add(first, weights);
    }
  }
}

Taps::Place Taps::operator[](std::int64_t place) const {
  const auto index = static_cast<std::size_t>(place);
  return {first_[index], absl::MakeConstSpan(weights_).subspan(begin_[index], begin_[index + 1] - begin_[index])};
}

void Taps::Add(std::int64_t first, absl::Span<const double> weights) {
  first_.push_back(first);
  weights_.insert(weights_.end(), weights.begin(), weights.end());
  begin_.push_back(weights_.size());
}

void Taps::AddRepeatingEdges(std::int64_t from, std::int64_t first, absl::Span<const double> weights) {
  const std::int64_t begin = std::clamp(first, std::int64_t{0}, from - 1);
  const std::int64_t end = std::clamp(first + static_cast<std::int64_t>(weights.size()) - 1, std::int64_t{0}, from - 1);
  std::vector<double> inside(static_cast<std::size_t>(end - begin + 1), 0.0);
  for (const double weight : weights) {
    inside[static_cast<std::size_t>(std::clamp(first++, begin, end) - begin)] += weight;
  }
  Add(begin, inside);
}

Tensor Resample(const Tensor& image, const Extents& extents, const Box& size, Inter interpolation, bool antialias) {
  const Taps rows(extents.height, size.height, interpolation, antialias);
  const Taps columns(extents.width, size.width, interpolation, antialias);
  if (image.dtype() == DType::kF32) return ResampleAs<float>(image, extents, rows, columns, /*round=*/false);
  return ResampleAs<std::uint8_t>(image, extents, rows, columns, antialias);
}

}  // namespace mpc::data::vision::internal
