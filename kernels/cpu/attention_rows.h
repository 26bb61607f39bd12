// What attention and its gradient share: shapes, masks, the scores of a block of rows, and how work is dealt out.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "kernels/attention_geometry.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_products.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::cpu {

/// The geometry, with the padding and the cut into tasks that the loops use.
struct AttentionShape : AttentionGeometry {
  /// Rows of scores that a task keeps.
  static constexpr std::int64_t kRows = 24;
  /// Tasks that may run at once: each has its own part of the workspace, whatever the number of threads.
  static constexpr std::int64_t kParts = 32;

  std::int64_t padded_columns() const { return PaddedToPanel(columns); }
  std::int64_t padded_width() const { return PaddedToPanel(width); }
  std::int64_t padded_value_width() const { return PaddedToPanel(value_width); }
  std::int64_t row_blocks() const { return (rows + kRows - 1) / kRows; }
  std::int64_t work() const { return heads() * rows * columns * (width + value_width); }

  /// Scales the products of one row. Positions that may not be read become -inf. `scores` holds `count` columns, of
  /// which the row may read those below ReadableColumns(row).
  void ScaleAndMask(const std::uint8_t* mask, std::int64_t head, std::int64_t row, std::int64_t count,
                    float* scores) const {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    const std::int64_t readable = std::min(count, ReadableColumns(row));
#pragma omp simd
    for (std::int64_t s = 0; s < readable; ++s) scores[s] *= scale;
    std::fill(scores + readable, scores + count, kNone);
    if (!has_mask) return;
    const std::uint8_t* const allowed = mask + MaskRow(head, row);
    if (mask_strides[3] == 0) {
      if (*allowed == 0) std::fill_n(scores, count, kNone);
      return;
    }
#pragma omp simd
    for (std::int64_t s = 0; s < readable; ++s) scores[s] = allowed[s] != 0 ? scores[s] : kNone;
  }
};

/// Rounds to a low storage type and back; f32 stays.
inline void RoundThrough(DType dtype, float* values, std::int64_t count) {
  if (!IsLowPrecision(dtype)) return;
  std::uint16_t stored[kBlock];
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const std::int64_t size = std::min(kBlock, count - start);
    StoreFloats(dtype, values + start, stored, 0, size);
    LoadFloats(dtype, stored, 0, size, values + start);
  }
}

/// Rows as a left operand reads them: row r begins at data + r * stride.
struct LoadedRows {
  const float* data;
  std::int64_t stride;
};

/// `count` rows of `width` elements from row `first` of `head`, as f32 in `buffer` unless they are stored so.
inline LoadedRows LoadRows(Source x, const HeadRows& rows, std::int64_t head, std::int64_t first, std::int64_t count,
                           std::int64_t width, float* buffer) {
  if (x.dtype == DType::kF32) return {static_cast<const float*>(x.data) + rows.At(head, first), rows.row_stride};
  for (std::int64_t r = 0; r < count; ++r) {
    LoadFloats(x.dtype, x.data, rows.At(head, first + r), width, buffer + r * width);
  }
  return {buffer, width};
}

/// Stores `count` rows of `width` elements, which are padded to panels, from row `first` of `head` on.
inline void StoreRows(DType dtype, const float* from, const HeadRows& rows, std::int64_t head, std::int64_t first,
                      std::int64_t count, std::int64_t width, void* to) {
  for (std::int64_t r = 0; r < count; ++r) {
    StoreFloats(dtype, from + r * PaddedToPanel(width), to, rows.At(head, first + r), width);
  }
}

/// The number of parts of the workspace for `tasks` tasks. A part needs at least four tasks to pay for what it
/// packs first.
inline std::int64_t PartsOf(std::int64_t tasks) {
  return std::clamp<std::int64_t>(tasks / 4, std::min<std::int64_t>(tasks, 2), AttentionShape::kParts);
}

/// Calls body(part, begin, end) for contiguous ranges of `tasks` tasks. The ranges depend on their number alone.
template <typename Body>
void ForEachPart(std::int64_t tasks, std::int64_t parts, std::int64_t work, const Body& body) {
  ParallelFor(parts, work, [&](std::int64_t part) { body(part, part * tasks / parts, (part + 1) * tasks / parts); });
}

}  // namespace mpc::cpu
