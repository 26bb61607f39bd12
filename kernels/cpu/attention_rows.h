// What attention and its gradient share: shapes, masks, the scores of a block of rows, and how work is dealt out.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_products.h"
#include "kernels/cpu/vector_math.h"

namespace mpc::cpu {

/// query [B, H, T, D], key [B, H, S, D], value [B, H, S, E]; a head is one index of [B, H].
struct AttentionShape {
  std::int64_t batch, heads_per_sample, rows, columns, width, value_width;
  float scale;
  bool causal;
  bool has_mask = false;
  std::array<std::int64_t, 4> mask_strides{};  ///< 0 along axes that are broadcast

  /// Rows of scores that a task keeps.
  static constexpr std::int64_t kRows = 24;
  /// Tasks that may run at once: each has its own part of the workspace, whatever the number of threads.
  static constexpr std::int64_t kSlots = 32;

  static AttentionShape Of(const KernelSpec& spec, const TensorSpec& query, const TensorSpec& key,
                           const TensorSpec& value, const TensorSpec* mask) {
    AttentionShape shape{query.shape[0],
                         query.shape[1],
                         query.shape[2],
                         key.shape[2],
                         query.shape[3],
                         value.shape[3],
                         static_cast<float>(spec.attributes.GetDouble("scale", 1)),
                         spec.attributes.GetBool("causal")};
    if (mask == nullptr) return shape;
    shape.has_mask = true;
    const Shape strides = RowMajorStrides(mask->shape);
    const std::size_t missing = 4 - mask->shape.size();
    for (std::size_t axis = 0; axis < mask->shape.size(); ++axis) {
      shape.mask_strides[missing + axis] = mask->shape[axis] == 1 ? 0 : strides[axis];
    }
    return shape;
  }

  std::int64_t heads() const { return batch * heads_per_sample; }
  std::int64_t padded_columns() const { return PaddedToPanel(columns); }
  std::int64_t padded_width() const { return PaddedToPanel(width); }
  std::int64_t padded_value_width() const { return PaddedToPanel(value_width); }
  std::int64_t row_blocks() const { return (rows + kRows - 1) / kRows; }
  std::int64_t work() const { return heads() * rows * columns * (width + value_width); }

  /// Columns [0, result) that row `row` may read before the mask is looked at.
  std::int64_t ReadableColumns(std::int64_t row) const {
    if (!causal) return columns;
    return std::clamp<std::int64_t>(row + columns - rows + 1, 0, columns);
  }

  /// Scales the products of one row and gives positions that may not be read -inf. `scores` holds `count` columns, of
  /// which the row may read those below ReadableColumns(row).
  void ScaleAndMask(const std::uint8_t* mask, std::int64_t head, std::int64_t row, std::int64_t count,
                    float* scores) const {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    const std::int64_t readable = std::min(count, ReadableColumns(row));
#pragma omp simd
    for (std::int64_t s = 0; s < readable; ++s) scores[s] *= scale;
    std::fill(scores + readable, scores + count, kNone);
    if (!has_mask) return;
    const std::uint8_t* const allowed = mask + head / heads_per_sample * mask_strides[0] +
                                        head % heads_per_sample * mask_strides[1] + row * mask_strides[2];
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

/// `rows` rows of `width` elements from `offset`, as f32 in `buffer` unless they are stored so.
inline const float* LoadRows(Source x, std::int64_t offset, std::int64_t rows, std::int64_t width, float* buffer) {
  if (x.dtype == DType::kF32) return static_cast<const float*>(x.data) + offset;
  LoadFloats(x.dtype, x.data, offset, rows * width, buffer);
  return buffer;
}

/// Parts of the workspace for `tasks` tasks. Four tasks a slot or more pay for what a slot packs first.
inline std::int64_t SlotsOf(std::int64_t tasks) {
  return std::clamp<std::int64_t>(tasks / 4, std::min<std::int64_t>(tasks, 2), AttentionShape::kSlots);
}

/// Calls body(slot, begin, end) for contiguous ranges of `tasks` tasks. The ranges depend on their number alone.
template <typename Body>
void ForEachSlot(std::int64_t tasks, std::int64_t slots, std::int64_t work, const Body& body) {
  ParallelFor(slots, work, [&](std::int64_t slot) { body(slot, slot * tasks / slots, (slot + 1) * tasks / slots); });
}

}  // namespace mpc::cpu
