// Tensors whose elements belong to channels, for normalisation: [N, C] and NHWC are matrices with a channel a column,
// NCHW has planes of one channel. Sums over channels and maps that read a channel's parameters are written for single
// elements; the skeletons here walk the layout. A *result* is a channel, or a channel of one sample.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/column_reduce.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/row_reduce.h"
#include "kernels/window.h"

namespace mpc::cuda {

struct ChannelView {
  std::int64_t samples = 1, channels = 1, plane = 1;
  bool channels_last = true;
  bool by_sample = false;  ///< results are [sample, channel]; else [channel]

  ChannelView(const Shape& shape, DataFormat data_format, bool by_sample) : by_sample(by_sample) {
    samples = shape[0];
    if (shape.size() == 4) {
      const ImageAxes axes = AxesOf(data_format);
      channels = shape[static_cast<std::size_t>(axes.channel)];
      plane = shape[static_cast<std::size_t>(axes.height)] * shape[static_cast<std::size_t>(axes.width)];
      channels_last = data_format == DataFormat::kNHWC || plane == 1;
    } else {
      channels = shape[1];
    }
  }

  std::int64_t results() const { return by_sample ? samples * channels : channels; }
  /// Elements that belong to one result.
  std::int64_t count() const { return by_sample ? plane : samples * plane; }

  RowPlan Rows() const { return RowPlan::For(results(), by_sample ? 1 : samples, plane); }
  ColumnPlan Columns(std::int64_t blocks = ColumnPlan::kBlocks) const {
    return ColumnPlan::For(by_sample ? samples : 1, count(), channels, blocks);
  }

  /// The workspace of a ChannelReduce of kValues values.
  template <typename Value>
  std::size_t workspace_bytes(int values) const {
    return channels_last ? Columns().workspace_bytes<Value>(values) : Rows().workspace_bytes<Value>(values);
  }
};

/// Sources of kOperands tensors of one layout.
template <int kOperands>
struct ChannelOperands {
  Source x[kOperands];
};

/// Terms of RowReduce: a result's planes are its segments.
template <int kOperands, int kValues, typename Channel, typename Value>
struct ChannelRowTerms {
  ChannelOperands<kOperands> operands;
  Channel channel;
  std::int64_t channels, plane;

  template <int kWidth>
  struct Row {
    const ChannelRowTerms& terms;
    std::int64_t result;
    typename Channel::Parameters parameters;

    __device__ __forceinline__ void Add(std::int64_t segment, std::int64_t index, Value (&values)[kValues]) const {
      float x[kOperands][kWidth];
      const std::int64_t at = (segment * terms.channels + result) * terms.plane + index;
      for (int k = 0; k < kOperands; ++k) LoadElements(terms.operands.x[k], at, x[k]);
      for (int i = 0; i < kWidth; ++i) {
        float element[kOperands];
        for (int k = 0; k < kOperands; ++k) element[k] = x[k][i];
        Channel::Add(parameters, element, values);
      }
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Row<kWidth> RowAt(std::int64_t result) const {
    return {*this, result, channel.Load(result)};
  }
};

/// Terms of ColumnReduce: a matrix is a sample, or all of them.
template <int kOperands, int kValues, typename Channel, typename Value>
struct ChannelColumnTerms {
  ChannelOperands<kOperands> operands;
  Channel channel;
  std::int64_t rows, channels;

  template <int kWidth>
  struct Columns {
    struct Loaded {
      StoredElements<kWidth> x[kOperands];
    };
    const ChannelColumnTerms& terms;
    std::int64_t first;  ///< element of row 0
    typename Channel::Parameters parameters[kWidth];

    __device__ __forceinline__ Loaded Load(std::int64_t row) const {
      Loaded loaded;
      for (int k = 0; k < kOperands; ++k) {
        loaded.x[k] = LoadStored<kWidth>(terms.operands.x[k], first + row * terms.channels);
      }
      return loaded;
    }
    __device__ __forceinline__ void Add(const Loaded& loaded, std::int64_t, Value (&values)[kValues][kWidth]) const {
      float x[kOperands][kWidth];
      for (int k = 0; k < kOperands; ++k) WidenStored(terms.operands.x[k], loaded.x[k], x[k]);
      for (int i = 0; i < kWidth; ++i) {
        float element[kOperands];
        Value sums[kValues];
        for (int k = 0; k < kOperands; ++k) element[k] = x[k][i];
        for (int k = 0; k < kValues; ++k) sums[k] = values[k][i];
        Channel::Add(parameters[i], element, sums);
        for (int k = 0; k < kValues; ++k) values[k][i] = sums[k];
      }
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Columns<kWidth> ColumnsAt(std::int64_t matrix, std::int64_t column) const {
    Columns<kWidth> columns{*this, matrix * rows * channels + column, {}};
    for (int i = 0; i < kWidth; ++i) columns.parameters[i] = channel.Load(matrix * channels + column + i);
    return columns;
  }
};

/// Computes kValues sums for each result. `Channel` has `Parameters Load(result) const` and the static `Add(parameters,
/// x, sums)`, which adds the terms of one element, x[k] of operand k. `finish(result, sums)` is called by one thread a
/// result.
template <typename Value, int kOperands, int kValues, typename Channel, typename Finish>
absl::Status ChannelReduce(LaunchQueue& queue, const ChannelView& view, const ChannelOperands<kOperands>& operands,
                           const Channel& channel, const Finish& finish, void* workspace) {
  using Op = scalar::SumOp<Value>;
  if (view.channels_last) {
    const ChannelColumnTerms<kOperands, kValues, Channel, Value> terms{operands, channel, view.count(), view.channels};
    return ColumnReduce<Op, kValues>(queue, view.Columns(), terms, finish, workspace);
  }
  const ChannelRowTerms<kOperands, kValues, Channel, Value> terms{operands, channel, view.channels, view.plane};
  return RowReduce<Op, kValues>(queue, view.Rows(), terms, finish, workspace);
}

/// The channel of a ChannelReduce that sums x and x^2.
struct MomentSums {
  struct Parameters {};
  __device__ Parameters Load(std::int64_t) const { return {}; }
  __device__ static __forceinline__ void Add(const Parameters&, const float (&x)[1], double (&sums)[2]) {
    const double value = x[0];
    sums[0] += value;
    sums[1] += value * value;
  }
};

/// Each thread keeps its columns' parameters and goes down the rows.
template <int kWidth, int kOperands, typename Channel>
__global__ void __launch_bounds__(kColumnThreads, 2)
    ChannelColumnMapKernel(ColumnPlan plan, MapOperands<kOperands> operands, Channel channel) {
  AwaitEarlierLaunches();
  const int lane = static_cast<int>(threadIdx.x) % plan.lanes;
  const int slice = static_cast<int>(threadIdx.x) / plan.lanes;
  const int slices = kColumnThreads / plan.lanes;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * plan.lanes + lane) * kWidth;
  if (column >= plan.columns) return;
  for (std::int64_t matrix = blockIdx.z; matrix < plan.matrices; matrix += gridDim.z) {
    typename Channel::Parameters parameters[kWidth];
    for (int i = 0; i < kWidth; ++i) parameters[i] = channel.Load(matrix * plan.columns + column + i);
    const std::int64_t begin = blockIdx.y * plan.rows_per_block;
    const std::int64_t end = begin + plan.rows_per_block < plan.rows ? begin + plan.rows_per_block : plan.rows;
    const std::int64_t first = matrix * plan.rows * plan.columns + column;
    using Loaded = StoredElements<kWidth>[kOperands];
    constexpr int kAhead = RowsAhead<Loaded>();
    for (std::int64_t row = begin + slice; row < end; row += kAhead * slices) {
      Loaded loaded[kAhead];
      MPC_UNROLL for (int r = 0; r < kAhead; ++r) {
        // Beyond the end the thread's own row is loaded once more, and not used.
        const std::int64_t at = first + (row + r * slices < end ? row + r * slices : row) * plan.columns;
        for (int k = 0; k < kOperands; ++k) loaded[r][k] = LoadStored<kWidth>(operands.x[k], at);
      }
      MPC_UNROLL for (int r = 0; r < kAhead; ++r) {
        if (row + r * slices >= end) continue;
        float x[kOperands][kWidth], y[kWidth];
        for (int k = 0; k < kOperands; ++k) WidenStored(operands.x[k], loaded[r][k], x[k]);
        for (int i = 0; i < kWidth; ++i) {
          float element[kOperands];
          for (int k = 0; k < kOperands; ++k) element[k] = x[k][i];
          y[i] = Channel::Apply(parameters[i], element);
        }
        StoreElements(operands.y, first + (row + r * slices) * plan.columns, y);
      }
    }
  }
}

/// A warp takes a plane of one channel, or a part of it.
template <int kWidth, int kOperands, typename Channel>
__global__ void __launch_bounds__(kMapThreads)
    ChannelPlaneMapKernel(ChannelView view, MapOperands<kOperands> operands, Channel channel, std::int64_t parts) {
  AwaitEarlierLaunches();
  constexpr int kWarps = kMapThreads / kWarpSize;
  const std::int64_t tasks = view.samples * view.channels * parts;
  const std::int64_t part_size = (view.plane / kWidth + parts - 1) / parts * kWidth;
  std::int64_t task = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarpSize;
  for (; task < tasks; task += static_cast<std::int64_t>(gridDim.x) * kWarps) {
    const std::int64_t plane = task / parts;
    const auto parameters = channel.Load(view.by_sample ? plane : plane % view.channels);
    const std::int64_t begin = task % parts * part_size;
    const std::int64_t end = begin + part_size < view.plane ? begin + part_size : view.plane;
    for (std::int64_t i = begin + threadIdx.x % kWarpSize * kWidth; i < end; i += kWarpSize * kWidth) {
      const std::int64_t at = plane * view.plane + i;
      float x[kOperands][kWidth], y[kWidth];
      for (int k = 0; k < kOperands; ++k) LoadElements(operands.x[k], at, x[k]);
      for (int j = 0; j < kWidth; ++j) {
        float element[kOperands];
        for (int k = 0; k < kOperands; ++k) element[k] = x[k][j];
        y[j] = Channel::Apply(parameters, element);
      }
      StoreElements(operands.y, at, y);
    }
  }
}

/// y = apply(parameters of the channel, x[0], x[1], ...), element by element; y may lie where an operand of its type
/// does. `Channel` has `Parameters Load(result) const` and the static `float Apply(parameters, x)`.
template <int kOperands, typename Channel>
absl::Status ChannelMap(LaunchQueue& queue, const ChannelView& view, const MapOperands<kOperands>& operands,
                        const Channel& channel) {
  if (view.channels_last) {
    constexpr std::int64_t kBlocks = 2048;  // without partial results, many blocks cost nothing
    const ColumnPlan plan = view.Columns(kBlocks);
    if (plan.vectors) {
      return launch(queue, &ChannelColumnMapKernel<kVector, kOperands, Channel>, plan.Blocks(), plan, operands,
                    channel);
    }
    return launch(queue, &ChannelColumnMapKernel<1, kOperands, Channel>, plan.Blocks(), plan, operands, channel);
  }
  constexpr std::int64_t kPartElements = 2048;
  const std::int64_t parts = (view.plane + kPartElements - 1) / kPartElements;
  LaunchShape shape;
  shape.threads = kMapThreads;
  shape.blocks_x = BlocksFor(view.samples * view.channels * parts, kMapThreads / kWarpSize);
  if (view.plane % kVector == 0) {
    return launch(queue, &ChannelPlaneMapKernel<kVector, kOperands, Channel>, shape, view, operands, channel, parts);
  }
  return launch(queue, &ChannelPlaneMapKernel<1, kOperands, Channel>, shape, view, operands, channel, parts);
}

}  // namespace mpc::cuda
