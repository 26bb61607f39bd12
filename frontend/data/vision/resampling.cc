#include "frontend/data/vision/resampling.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "frontend/data/vision/taps.h"
#include "frontend/data/vision/weighted_sums.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision::internal {
namespace {

/// Pixels of colour at one place of neighbouring rows, which have the same weights.
template <typename Sums>
struct PixelColumn {
  static constexpr std::int64_t kRows = 4;
  typename Sums::Quad rows[kRows] = {};
};

/// ResampleRows of pictures of colour, four rows and three channels at a time.
template <typename Sums, typename T>
void ResampleRowsOfColour(const T* source, const Extents& extents, const Taps& columns,
                          typename Sums::Between* result) {
  using Column = PixelColumn<Sums>;
  std::vector<Column> pixels(static_cast<std::size_t>(extents.width));
  for (std::int64_t y = 0; y < extents.height; y += Column::kRows) {
    const std::int64_t rows = std::min(extents.height - y, Column::kRows);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* pixel = source + (y + r) * extents.width * kColours;
      for (Column& column : pixels) {
        column.rows[r] = Sums::LoadPixel(pixel);
        pixel += kColours;
      }
    }
    for (std::int64_t x = 0; x < columns.size(); ++x) {
      const Taps::Place place = columns[x];
      const Column* column = pixels.data() + place.first;
      Column sums;
      for (const typename Sums::Weight given : Sums::WeightsOf(place)) {
        const typename Sums::Quad weight = Sums::Spread(given);
        for (std::int64_t r = 0; r < Column::kRows; ++r)
          sums.rows[r] = Sums::Add(sums.rows[r], weight, column->rows[r]);
        ++column;
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        Sums::StorePixel(sums.rows[r], result + ((y + r) * columns.size() + x) * kColours);
      }
    }
  }
}

/// ResampleRows of pictures of any number of channels.
template <typename Sums, typename T>
void ResampleRowsOfAny(const T* source, const Extents& extents, const Taps& columns, typename Sums::Between* result) {
  using Weight = typename Sums::Weight;
  for (std::int64_t y = 0; y < extents.height; ++y) {
    const T* row = source + y * extents.width * extents.channels;
    for (std::int64_t x = 0; x < columns.size(); ++x) {
      const Taps::Place place = columns[x];
      for (std::int64_t c = 0; c < extents.channels; ++c) {
        Weight sum = 0;
        const T* pixel = row + place.first * extents.channels + c;
        for (const Weight weight : Sums::WeightsOf(place)) {
          sum += weight * static_cast<Weight>(*pixel);
          pixel += extents.channels;
        }
        Sums::Store(sum, result++);
      }
    }
  }
}

/// Resamples each row of `source`, [rows, columns.from, channels].
template <typename Sums, typename T>
std::vector<typename Sums::Between> ResampleRows(absl::Span<const T> source, const Extents& extents,
                                                 const Taps& columns) {
  std::vector<typename Sums::Between> result(
      static_cast<std::size_t>(extents.height * columns.size() * extents.channels));
  const bool quads = extents.channels == kColours && Sums::QuadsTake(columns);
  const auto resample = quads ? ResampleRowsOfColour<Sums, T> : ResampleRowsOfAny<Sums, T>;
  resample(source.data(), extents, columns, result.data());
  return result;
}

/// Resamples each column of `source`, whose rows have `row_size` values.
template <typename Sums, typename T>
void ResampleColumns(const std::vector<typename Sums::Between>& source, std::int64_t row_size, const Taps& rows,
                     T* target) {
  using Weight = typename Sums::Weight;
  const std::int64_t in_runs = Sums::QuadsTake(rows) ? row_size / kRunValues * kRunValues : 0;
  for (std::int64_t y = 0; y < rows.size(); ++y, target += row_size) {
    const Taps::Place place = rows[y];
    const auto* const first = source.data() + place.first * row_size;
    for (std::int64_t x = 0; x < in_runs; x += kRunValues) {
      typename Sums::Run sums;
      const auto* row = first + x;
      for (const Weight given : Sums::WeightsOf(place)) {
        const typename Sums::Quad weight = Sums::Spread(given);
        const typename Sums::Run values = Sums::LoadRun(row);
        for (std::size_t i = 0; i < std::size(sums.quads); ++i) {
          sums.quads[i] = Sums::Add(sums.quads[i], weight, values.quads[i]);
        }
        row += row_size;
      }
      Sums::StoreRun(sums, target + x);
    }
    for (std::int64_t x = in_runs; x < row_size; ++x) {
      Weight sum = 0;
      const auto* row = first + x;
      for (const Weight weight : Sums::WeightsOf(place)) {
        sum += weight * static_cast<Weight>(*row);
        row += row_size;
      }
      Sums::Store(sum, target + x);
    }
  }
}

template <typename Sums, typename T>
Tensor ResampleAs(const Tensor& image, const Extents& extents, const Taps& rows, const Taps& columns) {
  TensorSpec spec = WithExtents(image, rows.size(), columns.size());
  mpc::runtime::AlignedBuffer buffer(spec.bytes());
  const auto narrow = ResampleRows<Sums>(image.data<T>(), extents, columns);
  ResampleColumns<Sums>(narrow, columns.size() * extents.channels, rows, reinterpret_cast<T*>(buffer.data()));
  return mpc::internal::MakeConcrete(std::move(spec), std::move(buffer));
}

}  // namespace

Tensor Resample(const Tensor& image, const Extents& extents, const Box& size, Inter interpolation, bool antialias) {
  const Taps rows(extents.height, size.height, interpolation, antialias);
  const Taps columns(extents.width, size.width, interpolation, antialias);
  if (image.dtype() == DType::kF32) return ResampleAs<FloatSums, float>(image, extents, rows, columns);
  return antialias ? ResampleAs<FixedSums, std::uint8_t>(image, extents, rows, columns)
                   : ResampleAs<FloatSums, std::uint8_t>(image, extents, rows, columns);
}

}  // namespace mpc::data::vision::internal
