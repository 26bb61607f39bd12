// resize and resize_grad for NCHW and NHWC, any floating storage type; sums in f32. Where pixels are read from is in
// tables that are made once. Gradients gather: each pixel of dx adds what read it, columns before rows.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/resize_geometry.h"

namespace mpc::cpu {
namespace {

using Geometry = ResizeGeometry<std::int64_t>;
using Axis = ResizeAxis<std::int64_t>;
using Tap = ResizeTap<std::int64_t>;

std::vector<Tap> TapsOf(const Axis& axis) {
  std::vector<Tap> taps;
  for (std::int64_t i = 0; i < axis.output; ++i) taps.push_back(axis.TapOf(i));
  return taps;
}

struct Forward {
  explicit Forward(const Geometry& geometry)
      : geometry_(geometry), rows_(TapsOf(geometry.rows)), columns_(TapsOf(geometry.columns)) {}

  void Run(Source x, Sink y) const {
    const std::int64_t height = geometry_.rows.output;
    ParallelFor(geometry_.outer * height, geometry_.outer * geometry_.output_image(), [&](std::int64_t task) {
      const Tap& tap = rows_[static_cast<std::size_t>(task % height)];
      const std::int64_t row_size = geometry_.columns.input * geometry_.inner;
      const std::int64_t base = task / height * geometry_.input_image();
      const Lines lines{base + tap.first * row_size, base + tap.second * row_size, tap};
      geometry_.inner == 1 ? Plane(x, lines, y, task) : Channels(x, lines, y, task);
    });
  }

 private:
  /// Where the two rows of x begin that a row of y reads.
  struct Lines {
    std::int64_t first, second;
    Tap tap;
  };

  /// Elements [offset, offset + size) between two rows: in `target` unless they are those of one row.
  static const float* Between(Source x, const Lines& lines, std::int64_t offset, std::int64_t size, float* target) {
    BlockBuffer buffer;
    const float* first = x.Load(lines.first + offset, size, target);
    if (!lines.tap.has_second()) return first;
    const float* second = x.Load(lines.second + offset, size, buffer.values);
    const Tap tap = lines.tap;
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) target[i] = tap.Between(first[i], second[i]);
    return target;
  }

  /// A row of pixels of one value. A tile's columns of x fit a block.
  void Plane(Source x, const Lines& lines, Sink y, std::int64_t line) const {
    const std::int64_t width = geometry_.columns.output;
    BlockBuffer between_buffer, y_buffer;
    for (std::int64_t begin = 0, end = 0; begin < width; begin = end) {
      const std::int64_t left = columns_[static_cast<std::size_t>(begin)].first;
      while (end < width && end - begin < kBlock && columns_[static_cast<std::size_t>(end)].second - left < kBlock)
        ++end;
      const std::int64_t span = columns_[static_cast<std::size_t>(end - 1)].second - left + 1;
      const float* between = Between(x, lines, left, span, between_buffer.values);
      const Tap* taps = columns_.data() + begin;
      float* target = y.Target(line * width + begin, y_buffer.values);
      for (std::int64_t j = 0; j < end - begin; ++j) {
        const float first = between[taps[j].first - left];
        target[j] = taps[j].has_second() ? taps[j].Between(first, between[taps[j].second - left]) : first;
      }
      y.Commit(line * width + begin, end - begin, target);
    }
  }

  /// A row of pixels of several channels.
  void Channels(Source x, const Lines& lines, Sink y, std::int64_t line) const {
    const std::int64_t inner = geometry_.inner;
    BlockBuffer first_buffer, second_buffer, y_buffer;
    for (std::size_t j = 0; j < columns_.size(); ++j) {
      const Tap tap = columns_[j];
      for (std::int64_t channel = 0; channel < inner; channel += kBlock) {
        const std::int64_t size = std::min(kBlock, inner - channel);
        const std::int64_t offset = (line * geometry_.columns.output + static_cast<std::int64_t>(j)) * inner + channel;
        float* target = y.Target(offset, y_buffer.values);
        const float* first = Between(x, lines, tap.first * inner + channel, size, first_buffer.values);
        if (!tap.has_second()) {
          std::copy_n(first, size, target);
        } else {
          const float* second = Between(x, lines, tap.second * inner + channel, size, second_buffer.values);
#pragma omp simd
          for (std::int64_t i = 0; i < size; ++i) target[i] = tap.Between(first[i], second[i]);
        }
        y.Commit(offset, size, target);
      }
    }
  }

  Geometry geometry_;
  std::vector<Tap> rows_, columns_;
};

/// The pixels of y that read each pixel of x along one axis, and their weights.
class ReaderTable {
 public:
  explicit ReaderTable(const Axis& axis) {
    for (std::int64_t at = 0; at < axis.input; ++at) {
      const PixelRange<std::int64_t> range = axis.ReadersOf(at);
      readers_.push_back({range, weights_.size()});
      for (std::int64_t i = range.begin; i < range.end; ++i) weights_.push_back(axis.WeightOf(i, at));
    }
  }

  struct Readers {
    PixelRange<std::int64_t> range;
    const float* weights;  ///< one for each pixel of the range
  };
  Readers Of(std::int64_t at) const {
    const Entry& entry = readers_[static_cast<std::size_t>(at)];
    return {entry.range, weights_.data() + entry.first_weight};
  }

 private:
  struct Entry {
    PixelRange<std::int64_t> range;
    std::size_t first_weight;
  };
  std::vector<Entry> readers_;
  std::vector<float> weights_;
};

struct Backward {
  explicit Backward(const Geometry& geometry) : geometry_(geometry), rows_(geometry.rows), columns_(geometry.columns) {}

  void Run(Source dy, Sink dx) const {
    const std::int64_t height = geometry_.rows.input;
    ParallelFor(geometry_.outer * height, geometry_.outer * geometry_.output_image(), [&](std::int64_t task) {
      const std::int64_t base = task / height * geometry_.output_image();
      const ReaderTable::Readers readers = rows_.Of(task % height);
      geometry_.inner == 1 ? Plane(dy, base, readers, dx, task) : Channels(dy, base, readers, dx, task);
    });
  }

 private:
  /// The sum over the rows that read one row of x, of elements [offset, offset + size) of each, times their weights.
  void SumRows(Source dy, std::int64_t base, const ReaderTable::Readers& readers, std::int64_t offset,
               std::int64_t size, float* sums) const {
    const std::int64_t row_size = geometry_.columns.output * geometry_.inner;
    BlockBuffer buffer;
    std::fill_n(sums, size, 0.0f);
    for (std::int64_t i = readers.range.begin; i < readers.range.end; ++i) {
      const float weight = readers.weights[i - readers.range.begin];
      const float* values = dy.Load(base + i * row_size + offset, size, buffer.values);
#pragma omp simd
      for (std::int64_t k = 0; k < size; ++k) sums[k] += weight * values[k];
    }
  }

  /// A row of pixels of one value. A tile of them takes what read it in blocks.
  void Plane(Source dy, std::int64_t base, const ReaderTable::Readers& row_readers, Sink dx, std::int64_t line) const {
    const std::int64_t width = geometry_.columns.input;
    BlockBuffer row_sums, dx_buffer;
    for (std::int64_t first = 0; first < width; first += kBlock) {
      const std::int64_t last = std::min(width, first + kBlock);
      float* target = dx.Target(line * width + first, dx_buffer.values);
      std::fill_n(target, last - first, 0.0f);
      const std::int64_t end = columns_.Of(last - 1).range.end;
      for (std::int64_t block = columns_.Of(first).range.begin; block < end; block += kBlock) {
        const std::int64_t size = std::min(kBlock, end - block);
        SumRows(dy, base, row_readers, block, size, row_sums.values);
        for (std::int64_t at = first; at < last; ++at) {
          const ReaderTable::Readers readers = columns_.Of(at);
          const std::int64_t from = std::max(block, readers.range.begin);
          const std::int64_t to = std::min(block + size, readers.range.end);
          for (std::int64_t j = from; j < to; ++j) {
            target[at - first] += readers.weights[j - readers.range.begin] * row_sums.values[j - block];
          }
        }
      }
      dx.Commit(line * width + first, last - first, target);
    }
  }

  /// A row of pixels of several channels.
  void Channels(Source dy, std::int64_t base, const ReaderTable::Readers& row_readers, Sink dx,
                std::int64_t line) const {
    const std::int64_t inner = geometry_.inner;
    BlockBuffer row_sums, dx_buffer;
    for (std::int64_t at = 0; at < geometry_.columns.input; ++at) {
      const ReaderTable::Readers readers = columns_.Of(at);
      for (std::int64_t channel = 0; channel < inner; channel += kBlock) {
        const std::int64_t size = std::min(kBlock, inner - channel);
        const std::int64_t offset = (line * geometry_.columns.input + at) * inner + channel;
        float* target = dx.Target(offset, dx_buffer.values);
        std::fill_n(target, size, 0.0f);
        for (std::int64_t j = readers.range.begin; j < readers.range.end; ++j) {
          SumRows(dy, base, row_readers, j * inner + channel, size, row_sums.values);
          const float weight = readers.weights[j - readers.range.begin];
#pragma omp simd
          for (std::int64_t k = 0; k < size; ++k) target[k] += weight * row_sums.values[k];
        }
        dx.Commit(offset, size, target);
      }
    }
  }

  Geometry geometry_;
  ReaderTable rows_, columns_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateResize(const KernelSpec& spec) {
  const Geometry geometry = Geometry::Create(spec.attributes, spec.inputs[0].shape, spec.outputs[0].shape);
  return MakeKernel([forward = Forward(geometry), x = spec.inputs[0].dtype,
                     y = spec.outputs[0].dtype](const KernelOperands& operands) {
    forward.Run({x, operands.inputs[0]}, {y, operands.outputs[0]});
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateResizeGrad(const KernelSpec& spec) {
  const Geometry geometry = Geometry::Create(spec.attributes, spec.outputs[0].shape, spec.inputs[0].shape);
  return MakeKernel([backward = Backward(geometry), dy = spec.inputs[0].dtype,
                     dx = spec.outputs[0].dtype](const KernelOperands& operands) {
    backward.Run({dy, operands.inputs[0]}, {dx, operands.outputs[0]});
  });
}

}  // namespace

void RegisterResize(Registry& registry) {
  registry.Add("resize", CreateResize);
  registry.Add("resize_grad", CreateResizeGrad);
}

}  // namespace mpc::cpu
