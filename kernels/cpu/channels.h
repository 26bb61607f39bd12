// A tensor seen as elements of channels: [N, C] is a matrix with a channel a column, NCHW has planes of one channel.
// Both are visited in *runs*, contiguous elements with a parameter value an element, so that one loop body serves both.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cpu/column_sums.h"

namespace mpc::cpu {

class ChannelView {
 public:
  /// Elements of a run at most.
  static constexpr std::int64_t kRun = kBlock / 2;
  /// A parameter for each element of a run.
  struct Expanded {
    alignas(64) float values[kRun];
  };

  /// The view of a tensor of [batch, channels, plane] elements.
  ChannelView(std::int64_t batch, std::int64_t channels, std::int64_t plane)
      : batch_(batch),
        channels_(channels),
        plane_(plane),
        by_plane_(plane > 1),
        tiling_(ColumnTiling::For(batch * plane, channels)) {}

  std::size_t partial_count(int sums) const { return by_plane_ ? 0 : tiling_.partial_count(sums); }

  /// The parameter of each element of the runs of the task that begins at `channel`.
  void Expand(const float* parameter, std::int64_t channel, Expanded& target) const {
    if (by_plane_) {
      std::fill_n(target.values, kRun, parameter[channel]);
    } else {
      ExpandOverRun(tiling_, parameter, channel, target.values);
    }
  }

  /// Sums over each channel: see SumColumns.
  template <int kSums, typename Begin>
  void Sum(float* partial, const std::array<float*, kSums>& totals, const Begin& begin) const {
    if (!by_plane_) return SumColumns<kSums>(tiling_, partial, totals, begin);
    ParallelFor(channels_, batch_ * channels_ * plane_, [&](std::int64_t channel) {
      float sums[kSums][kRun] = {};
      const auto add = begin(channel);
      ForEachRunOfPlane(channel, [&](std::int64_t offset, std::int64_t size) { add(offset, size, sums); });
      for (int k = 0; k < kSums; ++k) {
        if (totals[k] != nullptr) totals[k][channel] = SumOf(sums[k], kRun);
      }
    });
  }

  /// Visits every run once: begin(channel) returns a functor visit(offset, size).
  template <typename Begin>
  void Visit(const Begin& begin) const {
    const std::int64_t work = batch_ * channels_ * plane_;
    if (by_plane_) {
      ParallelFor(channels_, work, [&](std::int64_t channel) { ForEachRunOfPlane(channel, begin(channel)); });
      return;
    }
    ParallelFor(tiling_.groups * tiling_.column_blocks, work, [&](std::int64_t task) {
      const std::int64_t row = task / tiling_.column_blocks * tiling_.rows_per_group;
      const std::int64_t column = task % tiling_.column_blocks * tiling_.column_block;
      ForEachRun(tiling_, row, std::min(tiling_.rows, row + tiling_.rows_per_group), column, begin(column));
    });
  }

 private:
  template <typename VisitRun>
  void ForEachRunOfPlane(std::int64_t channel, const VisitRun& visit) const {
    for (std::int64_t image = 0; image < batch_; ++image) {
      const std::int64_t base = (image * channels_ + channel) * plane_;
      for (std::int64_t start = 0; start < plane_; start += kRun) visit(base + start, std::min(kRun, plane_ - start));
    }
  }

  std::int64_t batch_, channels_, plane_;
  bool by_plane_;
  ColumnTiling tiling_;
};

}  // namespace mpc::cpu
