// The loops of pooling over the images of a PoolGeometry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/parallel.h"
#include "kernels/pool_geometry.h"

namespace mpc::cpu {

/// Output columns [begin, end) whose window column `v` lies inside the image.
struct ColumnRange {
  std::int64_t begin, end;

  static ColumnRange Inside(const Window& window, std::int64_t v, std::int64_t first, std::int64_t last) {
    const std::int64_t shift = v * window.dilation[1] - window.pad_begin[1];  // column = j * stride + shift
    const std::int64_t stride = window.stride[1];
    const std::int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const std::int64_t room = window.input[1] - 1 - shift;
    const std::int64_t end = room < 0 ? 0 : room / stride + 1;
    return {std::max(first, begin), std::min(last, end)};
  }
};

/// Values of a pixel that a narrow tile sets apart, so that each pixel fills one vector.
inline constexpr std::int64_t kNarrowPitch = 8;

template <std::int64_t value>
using Constant = std::integral_constant<std::int64_t, value>;

/// Moves `columns` runs of `run` values that lie `pitch` apart together.
template <typename T>
void CompactRuns(T* values, std::int64_t columns, std::int64_t pitch, std::int64_t run) {
  if (pitch == run) return;
  for (std::int64_t j = 1; j < columns; ++j) std::copy_n(values + j * pitch, run, values + j * run);
}

/// Where a tile's results lie: `columns` pixels of the output row `row` from `column` on, `run` values each, which are
/// `pitch` apart in the tile.
struct PoolTileShape {
  std::int64_t row, column, columns, run, pitch;
  std::int64_t padded_size() const { return columns * pitch; }
  std::int64_t size() const { return columns * run; }
};

/// Reduces each window. tile(shape) makes the state of at most kBlock neighbouring results. state.Add(position, length,
/// values, stride, element) takes values[i * stride] into result position + i. These values are element `element` of
/// their windows. Elements come in row-major order of the window. `length` and `stride` may be constants.
/// state.Finish(offset) stores the results from element `offset` on.
template <typename Tile>
void ForEachPoolTile(const PoolGeometry& geometry, Source x, const Tile& tile) {
  const Window& window = geometry.window;
  const std::int64_t inner = geometry.inner;
  const std::int64_t stride = window.stride[1];
  // ---- Extents of a tile
  const bool narrow = inner > 1 && inner < kNarrowPitch;
  // A tile's input columns fit a block too, so that low precision is widened once for each window position. A narrow
  // tile reads a whole vector at its last pixel.
  const std::int64_t fitting =
      narrow ? std::min((kBlock - kNarrowPitch) / (inner * stride), kBlock / kNarrowPitch) : kBlock / (inner * stride);
  const std::int64_t tile_columns = std::max<std::int64_t>(1, fitting);
  const std::int64_t channels = std::min(inner, kBlock);
  const std::int64_t work = geometry.outer * geometry.output_image() * window.kernel[0] * window.kernel[1];
  // ---- How a tile takes a row of elements
  // The columns [range.begin, range.end) of one window position.
  const auto add_row = [&](auto& state, const PoolTileShape& shape, ColumnRange range, const float* values,
                           std::int64_t element) {
    const std::int64_t position = range.begin - shape.column;
    const std::int64_t count = range.end - range.begin;
    if (inner == 1 && stride == 1) return state.Add(position, count, values, Constant<1>{}, element);
    if (inner == 1 && stride == 2) return state.Add(position, count, values, Constant<2>{}, element);
    if (inner == 1) return state.Add(position, count, values, stride, element);
    for (std::int64_t j = 0; j < count; ++j) {
      const float* from = values + j * stride * inner;
      const std::int64_t at = (position + j) * shape.pitch;
      if (narrow) {
        state.Add(at, Constant<kNarrowPitch>{}, from, Constant<1>{}, element);
      } else {
        state.Add(at, shape.run, from, Constant<1>{}, element);
      }
    }
  };
  // ---- All tiles, in parallel over the rows of the results
  ParallelFor(geometry.outer * window.output[0], work, [&](std::int64_t task) {
    const std::int64_t image = task / window.output[0];
    const std::int64_t row = task % window.output[0];
    BlockBuffer buffer{};
    for (std::int64_t first = 0; first < window.output[1]; first += tile_columns) {
      const std::int64_t last = std::min(window.output[1], first + tile_columns);
      for (std::int64_t channel = 0; channel < inner; channel += channels) {
        const std::int64_t run = std::min(channels, inner - channel);
        const PoolTileShape shape{row, first, last - first, run, narrow ? kNarrowPitch : run};
        auto state = tile(shape);
        for (std::int64_t u = 0; u < window.kernel[0]; ++u) {
          const std::int64_t input_row = row * window.stride[0] - window.pad_begin[0] + u * window.dilation[0];
          if (input_row < 0 || input_row >= window.input[0]) continue;
          for (std::int64_t v = 0; v < window.kernel[1]; ++v) {
            const ColumnRange range = ColumnRange::Inside(window, v, first, last);
            if (range.begin >= range.end) continue;
            const std::int64_t column = range.begin * stride - window.pad_begin[1] + v * window.dilation[1];
            const std::int64_t pixel = input_row * window.input[1] + column;
            const std::int64_t span = (range.end - range.begin - 1) * stride * inner + run;
            const std::int64_t offset = image * geometry.input_image() + pixel * inner + channel;
            const float* values = buffer.values;
            if (narrow) {
              LoadFloats(x.dtype, x.data, offset, span, buffer.values);
            } else {
              values = x.Load(offset, span, buffer.values);
            }
            add_row(state, shape, range, values, u * window.kernel[1] + v);
          }
        }
        state.Finish((task * window.output[1] + first) * inner + channel);
      }
    }
  });
}

}  // namespace mpc::cpu
