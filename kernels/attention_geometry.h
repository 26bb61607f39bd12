// Extents, mask and scale of mpc.attention and mpc.attention_grad, shared by the kernels of every device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/kernel_spec.h"
#include "kernels/known_attributes.h"

namespace mpc {

/// query [B, H, T, D], key [B, H, S, D], value [B, H, S, E]; a head is one index of [B, H].
struct AttentionGeometry {
  std::int64_t batch, heads_per_sample, rows, columns, width, value_width;
  float scale;
  bool causal;
  bool has_mask = false;
  std::array<std::int64_t, 4> mask_strides{};  ///< 0 along axes that are broadcast

  /// `mask` may be null.
  static AttentionGeometry Create(const KernelSpec& spec, const TensorSpec& query, const TensorSpec& key,
                                  const TensorSpec& value, const TensorSpec* mask) {
    AttentionGeometry geometry{query.shape[0],
                               query.shape[1],
                               query.shape[2],
                               key.shape[2],
                               query.shape[3],
                               value.shape[3],
                               spec.attributes.Get(attribute::kScale),
                               spec.attributes.GetBool("causal")};
    if (mask == nullptr) return geometry;
    geometry.has_mask = true;
    const Shape strides = RowMajorStrides(mask->shape);
    const std::size_t missing = 4 - mask->shape.size();
    for (std::size_t axis = 0; axis < mask->shape.size(); ++axis) {
      geometry.mask_strides[missing + axis] = mask->shape[axis] == 1 ? 0 : strides[axis];
    }
    return geometry;
  }

  std::int64_t heads() const { return batch * heads_per_sample; }

  /// Columns [0, result) that row `row` may read before the mask is looked at.
  MPC_HOST_DEVICE std::int64_t ReadableColumns(std::int64_t row) const {
    if (!causal) return columns;
    const std::int64_t end = row + columns - rows + 1;
    return end < 0 ? 0 : (end < columns ? end : columns);
  }

  /// The offset of the mask's elements for row `row` of `head`. Those of its columns are mask_strides[3] apart.
  MPC_HOST_DEVICE std::int64_t MaskRow(std::int64_t head, std::int64_t row) const {
    return head / heads_per_sample * mask_strides[0] + head % heads_per_sample * mask_strides[1] +
           row * mask_strides[2];
  }
};

}  // namespace mpc
