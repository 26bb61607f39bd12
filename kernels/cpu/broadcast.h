// Operands whose shape is stretched to that of a result: aligned at the right, extents of 1 (and missing axes) repeat.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "kernels/cpu/blocks.h"
#include "kernels/strided_view.h"
#include "kernels/tensor_spec.h"

namespace mpc::cpu {

/// The way an operand's elements repeat: see BroadcastView.
class BroadcastMap {
 public:
  static constexpr int kMaxRank = StridedView::kMaxRank;

  /// Errors (INVALID_ARGUMENT): `operand` does not broadcast to `result`; more than eight merged axes.
  static absl::StatusOr<BroadcastMap> Create(const Shape& operand, const Shape& result);

  bool is_identity() const { return rank_ == 1 && strides_[0] == 1; }
  bool is_scalar() const { return rank_ == 0 || (rank_ == 1 && strides_[0] == 0); }

  /// Calls segment(position, source, stride, length) for the runs that make up result elements [offset, offset +
  /// count). Result `position + i`, counted from `offset`, is source element `source + i * stride`. The stride is 0 or
  /// 1.
  template <typename Segment>
  void ForEachSegment(std::int64_t offset, std::int64_t count, const Segment& segment) const {
    if (rank_ == 0) return segment(std::int64_t{0}, std::int64_t{0}, std::int64_t{0}, count);
    std::array<std::int64_t, kMaxRank> index{};
    std::int64_t source = 0;
    std::int64_t rest = offset;
    for (int axis = rank_ - 1; axis >= 0; --axis) {
      index[axis] = rest % extents_[axis];
      rest /= extents_[axis];
      source += index[axis] * strides_[axis];
    }
    const int inner = rank_ - 1;
    std::int64_t position = 0;
    while (true) {
      const std::int64_t length = std::min(extents_[inner] - index[inner], count - position);
      segment(position, source, strides_[inner], length);
      position += length;
      if (position >= count) return;
      source -= index[inner] * strides_[inner];
      index[inner] = 0;
      for (int axis = inner - 1; axis >= 0; --axis) {
        source += strides_[axis];
        if (++index[axis] < extents_[axis]) break;
        source -= extents_[axis] * strides_[axis];
        index[axis] = 0;
      }
    }
  }

 private:
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> extents_{};
  std::array<std::int64_t, kMaxRank> strides_{};
};

/// Elements [offset, offset + count) of an operand of any type, seen in the shape of the result. They stay where they
/// lie if that is the operand's own shape, else they are in `buffer`. `Word` has the bits of an element.
template <typename Word>
const Word* LoadWords(const BroadcastMap& map, const Word* data, std::int64_t offset, std::int64_t count,
                      Word* buffer) {
  if (map.is_identity()) return data + offset;
  map.ForEachSegment(offset, count,
                     [&](std::int64_t position, std::int64_t from, std::int64_t stride, std::int64_t length) {
                       if (stride == 0) {
                         std::fill_n(buffer + position, length, data[from]);
                       } else {
                         std::copy_n(data + from, length, buffer + position);
                       }
                     });
  return buffer;
}

/// A floating operand seen in the shape of the result.
struct BroadcastSource {
  Source source;
  const BroadcastMap* map;

  /// Result elements [offset, offset + count) as f32.
  const float* Load(std::int64_t offset, std::int64_t count, float* buffer) const {
    if (map->is_identity()) return source.Load(offset, count, buffer);
    map->ForEachSegment(offset, count,
                        [&](std::int64_t position, std::int64_t from, std::int64_t stride, std::int64_t length) {
                          if (stride == 0) {
                            std::fill_n(buffer + position, length, source.ElementAt(from));
                          } else {
                            LoadFloats(source.dtype, source.data, from, length, buffer + position);
                          }
                        });
    return buffer;
  }
};

}  // namespace mpc::cpu
