// Offsets of elements that are visited in another tensor's order: the device side of StridedView and Box. Indices are
// taken apart by multiplications, since a GPU divides integers by some twenty instructions.
#pragma once

#include <cstdint>

#include "kernels/cuda/device_language.h"
#include "kernels/strided_view.h"

namespace mpc::cuda {

/// Divides by a number that is known when a kernel is created, after Granlund and Montgomery, "Division by invariant
/// integers using multiplication" (PLDI 1994). This is exact below 2^31. Larger indices are divided by a division.
class Divisor {
 public:
  Divisor() = default;
  /// `divisor` >= 0; 0 counts as 1: nothing is ever divided by the extent of an empty axis.
  explicit Divisor(std::int64_t divisor) : divisor_(divisor < 1 ? 1 : divisor) {
    if (divisor_ > kNarrow) return;
    while ((std::int64_t{1} << shift_) < divisor_) ++shift_;
    const std::uint64_t excess = (std::uint64_t{1} << shift_) - static_cast<std::uint64_t>(divisor_);
    multiplier_ = static_cast<std::uint32_t>((excess << 32) / static_cast<std::uint64_t>(divisor_) + 1);
  }

  __device__ __forceinline__ std::int64_t value() const { return divisor_; }

  /// index / value() of an index that is not negative.
  __device__ __forceinline__ std::int64_t Quotient(std::int64_t index) const {
    if ((index | divisor_) > kNarrow) return index / divisor_;
    const std::uint32_t narrow = static_cast<std::uint32_t>(index);
    const std::uint32_t high = static_cast<std::uint32_t>((static_cast<std::uint64_t>(narrow) * multiplier_) >> 32);
    return (high + narrow) >> shift_;
  }

 private:
  static constexpr std::int64_t kNarrow = 0x7fffffff;
  std::int64_t divisor_ = 1;
  std::uint32_t multiplier_ = 1;
  std::uint32_t shift_ = 0;
};

/// A StridedView's elements.
class StridedOffsets {
 public:
  StridedOffsets() = default;
  explicit StridedOffsets(const StridedView& view) : rank_(view.rank) {
    for (int axis = 0; axis < rank_; ++axis) {
      extents_[axis] = Divisor(view.extents[axis]);
      strides_[axis] = view.strides[axis];
    }
  }

  /// Where result element `index` lies in the operand.
  __device__ __forceinline__ std::int64_t OffsetAt(std::int64_t index) const {
    if (rank_ == 0) return 0;
    std::int64_t offset = 0;
    for (int axis = rank_ - 1; axis > 0; --axis) {
      const std::int64_t outer = extents_[axis].Quotient(index);
      offset += (index - outer * extents_[axis].value()) * strides_[axis];
      index = outer;
    }
    return offset + index * strides_[0];
  }

 private:
  int rank_ = 0;
  Divisor extents_[StridedView::kMaxRank];
  std::int64_t strides_[StridedView::kMaxRank] = {};
};

/// Axes that step through two tensors at once.
class PairedOffsets {
 public:
  static constexpr int kMaxRank = StridedView::kMaxRank;

  /// Adds an axis outside the earlier ones. False if there are too many.
  bool Add(std::int64_t extent, std::int64_t from_stride, std::int64_t to_stride) {
    if (rank_ == kMaxRank) return false;
    extents_[rank_] = Divisor(extent);
    from_strides_[rank_] = from_stride;
    to_strides_[rank_] = to_stride;
    ++rank_;
    return true;
  }

  /// Adds to `from` and `to` where element `index` lies in either tensor.
  __device__ __forceinline__ void Advance(std::int64_t index, std::int64_t& from, std::int64_t& to) const {
    for (int axis = 0; axis < rank_; ++axis) {
      const std::int64_t outer = extents_[axis].Quotient(index);
      const std::int64_t position = index - outer * extents_[axis].value();
      from += position * from_strides_[axis];
      to += position * to_strides_[axis];
      index = outer;
    }
  }

 private:
  int rank_ = 0;
  Divisor extents_[kMaxRank];
  std::int64_t from_strides_[kMaxRank] = {};
  std::int64_t to_strides_[kMaxRank] = {};
};

}  // namespace mpc::cuda
