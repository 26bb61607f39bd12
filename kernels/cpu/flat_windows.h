// Images as lines of pixels, in which a tap of a window is a distance.
//
// Zeros lie between the rows of an image, and between images, wherever a window reaches beyond them. So the pixel under
// a tap lies at the same distance from the result's pixel everywhere. A row of tiles is sixteen pixels that follow each
// other. Neighbours share zeros: those behind a row are those before the next one.
//
// Windows of stride s read s x s lines: pixels of every s-th row and column, from another one on. Those are *phases*.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/convolution_shape.h"

namespace mpc::cpu {

/// [begin, end) of rows, of columns or of what they are cut into.
struct PixelRange {
  std::int64_t begin, end;
};

/// Windows along one axis of an image. Pixel r of the result reads pixel r * stride + tap * dilation - padding.
struct FlatAxis {
  std::int64_t results, taps, sources;
  std::int64_t stride, dilation, padding;

  /// The phase that a tap reads, and the distance in it.
  std::int64_t PhaseOf(std::int64_t tap) const { return tap * dilation % stride; }
  std::int64_t DistanceOf(std::int64_t tap) const { return tap * dilation / stride; }
  std::int64_t LastDistance() const { return DistanceOf(taps - 1); }
  /// Places from one row (or image) to the next in every phase.
  std::int64_t Pitch() const;
  /// Whether place `place` of a phase is a pixel, and which.
  std::int64_t SourceOf(std::int64_t place, std::int64_t phase) const { return place * stride + phase - padding; }
  /// The same of what a tap of a result's window reads.
  std::int64_t SourceUnder(std::int64_t tap, std::int64_t result) const {
    return result * stride + tap * dilation - padding;
  }
  bool HasSource(std::int64_t source) const { return source >= 0 && source < sources; }
  /// Whether a tap of a window at any place may read it.
  bool IsRead(std::int64_t source) const;
  /// The results whose windows have a pixel under a tap.
  PixelRange ResultsOf(std::int64_t tap) const;
};

/// Rows (0) or columns (1) of a convolution's images.
FlatAxis AxisOf(const ConvolutionShape& shape, std::size_t axis);

/// Windows over images.
class FlatWindows {
 public:
  FlatWindows(std::int64_t images, const FlatAxis& rows, const FlatAxis& columns);

  std::int64_t taps() const { return rows_.taps * columns_.taps; }
  std::int64_t phases() const { return rows_.stride * columns_.stride; }
  std::int64_t PhaseOf(std::int64_t tap) const {
    return rows_.PhaseOf(tap / columns_.taps) * columns_.stride + columns_.PhaseOf(tap % columns_.taps);
  }
  std::int64_t DistanceOf(std::int64_t tap) const {
    return rows_.DistanceOf(tap / columns_.taps) * pitch_ + columns_.DistanceOf(tap % columns_.taps);
  }
  /// Places of the result in all images, and what the last tap reads behind them.
  std::int64_t places() const { return images_ * places_of_image(); }
  std::int64_t last_distance() const { return rows_.LastDistance() * pitch_ + columns_.LastDistance(); }

  /// Calls visit(pixel) for `count` places from `first` on: the index of a pixel among those of all images, or -1.
  template <typename Visit>
  void ForEachSource(std::int64_t phase, std::int64_t first, std::int64_t count, const Visit& visit) const {
    const std::int64_t row_phase = phase / columns_.stride, column_phase = phase % columns_.stride;
    const auto source_row = [&](std::int64_t row) { return rows_.SourceOf(row, row_phase); };
    const auto source_column = [&](std::int64_t column) { return columns_.SourceOf(column, column_phase); };
    ForEachPlace(first, count, [&](std::int64_t image, std::int64_t row, std::int64_t begin, std::int64_t end) {
      const std::int64_t source = source_row(row), line = (image * rows_.sources + source) * columns_.sources;
      const bool has_row = rows_.HasSource(source) && image < images_;
      for (std::int64_t column = begin; column < end; ++column) {
        visit(has_row && columns_.HasSource(source_column(column)) ? line + source_column(column) : -1);
      }
    });
  }
  /// The same for pixels of the result.
  template <typename Visit>
  void ForEachResult(std::int64_t first, std::int64_t count, const Visit& visit) const {
    ForEachPlace(first, count, [&](std::int64_t image, std::int64_t row, std::int64_t begin, std::int64_t end) {
      const bool has_row = row < rows_.results && image < images_;
      for (std::int64_t column = begin; column < end; ++column) {
        const bool is_result = has_row && column < columns_.results;
        visit(is_result ? (image * rows_.results + row) * columns_.results + column : -1);
      }
    });
  }

 private:
  std::int64_t places_of_image() const { return row_pitch_ * pitch_; }

  /// Calls visit(image, row, begin, end) for places of one row each.
  template <typename Visit>
  void ForEachPlace(std::int64_t first, std::int64_t count, const Visit& visit) const {
    std::int64_t image = first / places_of_image(), row = first / pitch_ % row_pitch_, column = first % pitch_;
    while (count > 0) {
      const std::int64_t end = count < pitch_ - column ? column + count : pitch_;
      visit(image, row, column, end);
      count -= end - column;
      column = 0;
      if (++row == row_pitch_) row = 0, ++image;
    }
  }

  std::int64_t images_;
  FlatAxis rows_, columns_;
  std::int64_t row_pitch_, pitch_;
};

}  // namespace mpc::cpu
