// A tensor seen as elements of channels, for batch normalisation: [N, C] and NHWC are matrices with a channel a column,
// NCHW has planes of one channel. Both are visited in *runs*, contiguous elements with a parameter value an element, so
// that one loop body serves both.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernels/cpu/column_sums.h"
#include "kernels/window.h"

namespace mpc::cpu {

class ChannelView {
 public:
  /// Elements of a run at most.
  static constexpr std::int64_t kRun = kBlock / 2;
  /// A parameter for each element of a run.
  struct Expanded {
    alignas(64) float values[kRun];
  };

  ChannelView(const Shape& shape, const std::string& data_format) {
    if (shape.size() == 4) {
      const ImageAxes axes = AxesOf(data_format);
      channels_ = shape[static_cast<std::size_t>(axes.channel)];
      batch_ = shape[static_cast<std::size_t>(axes.batch)];
      plane_ = shape[static_cast<std::size_t>(axes.height)] * shape[static_cast<std::size_t>(axes.width)];
      by_plane_ = data_format != "NHWC" && plane_ > 1;
    } else {
      batch_ = shape[0];
      channels_ = shape.back();
    }
    tiling_ = ColumnTiling::For(batch_ * plane_, channels_);
  }

  std::int64_t channels() const { return channels_; }
  /// Elements of one channel.
  std::int64_t count() const { return batch_ * plane_; }
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

  std::int64_t batch_ = 1, channels_ = 1, plane_ = 1;
  bool by_plane_ = false;
  ColumnTiling tiling_;
};

}  // namespace mpc::cpu
