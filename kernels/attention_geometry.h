// Extents, mask and scale of attention, and where its tensors lie, shared by the kernels of every device.
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

/// The rows of all heads in one tensor, in elements. The elements of a row lie next to each other.
struct HeadRows {
  std::int64_t first, sample_stride, head_stride, row_stride;
  std::int64_t heads_per_sample;

  /// Where row `row` of `head` begins.
  MPC_HOST_DEVICE std::int64_t At(std::int64_t head, std::int64_t row) const {
    return first + head / heads_per_sample * sample_stride + head % heads_per_sample * head_stride + row * row_stride;
  }
};

/// One of the operands query, key and value, or the gradient of one, among the inputs or outputs of a kernel.
struct HeadTensor {
  std::size_t index;
  HeadRows rows;
};

/// What attention and packed_attention, or the gradients of both, are to a kernel: heads whose rows lie somewhere.
struct AttentionForm {
  AttentionGeometry geometry;
  HeadTensor query, key, value;     ///< among the inputs
  HeadTensor dquery, dkey, dvalue;  ///< among the outputs of a gradient
  HeadRows y;                       ///< rows of y and dy
  std::size_t dy = 0;               ///< input of a gradient
  std::size_t stored_y = 0;         ///< input of a gradient; valid if has_stored_y
  bool has_stored_y = false;
  std::size_t log_sum_exp = 0;  ///< input of a gradient, [B, H, T]
  std::size_t mask = 0;         ///< input; valid if geometry.has_mask

  /// `spec` is of one of the four operations.
  static AttentionForm Create(const KernelSpec& spec) {
    const bool is_packed = spec.name == "packed_attention" || spec.name == "packed_attention_grad";
    const bool is_gradient = spec.name == "attention_grad" || spec.name == "packed_attention_grad";
    AttentionForm form = is_packed ? Packed(spec, is_gradient ? 1 : 0) : Apart(spec, is_gradient ? 1 : 0);
    form.geometry.scale = spec.attributes.Get(attribute::kScale);
    form.geometry.causal = spec.attributes.GetBool("causal");
    form.has_stored_y = is_packed && is_gradient;
    // A gradient has dy first. y, log_sum_exp and a mask follow the last of query, key and value.
    form.stored_y = form.value.index + 1;
    form.log_sum_exp = form.stored_y + (form.has_stored_y ? 1 : 0);
    form.mask = is_gradient ? form.log_sum_exp + 1 : form.value.index + 1;
    if (spec.inputs.size() > form.mask) form.SetMask(spec.inputs[form.mask].shape);
    return form;
  }

  /// The input with the mask, null without one.
  const std::uint8_t* MaskOf(const void* const* inputs) const {
    return geometry.has_mask ? static_cast<const std::uint8_t*>(inputs[mask]) : nullptr;
  }

 private:
  /// Tensors [B, H, rows, width].
  static AttentionForm Apart(const KernelSpec& spec, std::size_t first) {
    const Shape& query = spec.inputs[first].shape;
    const Shape& value = spec.inputs[first + 2].shape;
    AttentionForm form;
    form.geometry = {query[0], query[1], query[2], value[2], query[3], value[3], 1, false};
    const auto rows = [&](std::int64_t count, std::int64_t width) {
      return HeadRows{0, query[1] * count * width, count * width, width, query[1]};
    };
    form.query = {first, rows(query[2], query[3])};
    form.key = {first + 1, rows(value[2], query[3])};
    form.value = {first + 2, rows(value[2], value[3])};
    form.y = rows(query[2], value[3]);
    form.dquery = {0, form.query.rows};
    form.dkey = {1, form.key.rows};
    form.dvalue = {2, form.value.rows};
    return form;
  }

  /// One tensor [B, T, 3 * H * D]: the queries of all heads, their keys, their values.
  static AttentionForm Packed(const KernelSpec& spec, std::size_t first) {
    const Shape& qkv = spec.inputs[first].shape;
    const std::int64_t heads = spec.attributes.GetInt("heads");
    const std::int64_t joined = qkv[2] / 3, width = joined / heads;
    AttentionForm form;
    form.geometry = {qkv[0], heads, qkv[1], qkv[1], width, width, 1, false};
    const auto part = [&](std::int64_t index) {
      return HeadRows{index * joined, qkv[1] * qkv[2], width, qkv[2], heads};
    };
    form.query = {first, part(0)};
    form.key = {first, part(1)};
    form.value = {first, part(2)};
    form.y = {0, qkv[1] * joined, width, joined, heads};
    form.dquery = {0, part(0)};
    form.dkey = {0, part(1)};
    form.dvalue = {0, part(2)};
    return form;
  }

  void SetMask(const Shape& shape) {
    geometry.has_mask = true;
    const Shape strides = RowMajorStrides(shape);
    const std::size_t missing = 4 - shape.size();
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      geometry.mask_strides[missing + axis] = shape[axis] == 1 ? 0 : strides[axis];
    }
  }
};

}  // namespace mpc
