// The row reduction skeleton: each result is computed from runs of contiguous elements. A warp or a block takes a
// result, depending on its length. Where results are few and long, several blocks share one. They leave partial values
// in the workspace, which a second launch combines. Shapes alone decide how, so that results are the same on every
// device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/storage.h"

namespace mpc::cuda {

inline constexpr int kRowThreads = 256;

/// How `results` results of `segments` runs of `width` elements each are shared out.
struct RowPlan {
  std::int64_t results = 1, segments = 1, width = 1;
  std::int64_t splits = 1;   ///< blocks that share a result
  bool vectors = false;      ///< runs begin at multiples of kVector and are as long
  bool block_teams = false;  ///< a block takes a result; else a warp

  /// Where `width` is a multiple of kVector, every run has to begin at one.
  static RowPlan For(std::int64_t results, std::int64_t segments, std::int64_t width) {
    constexpr std::int64_t kWarpElements = 1024;   // a warp's share at most
    constexpr std::int64_t kBlockElements = 8192;  // a block's share at least, where it is not alone
    constexpr std::int64_t kBlocks = 512;          // enough to fill a device
    RowPlan plan;
    plan.results = results;
    plan.segments = width == 0 ? 0 : segments;
    plan.width = std::max<std::int64_t>(1, width);
    plan.vectors = plan.width % kVector == 0;
    const std::int64_t elements = segments * width;
    plan.block_teams = elements > kWarpElements;
    if (plan.block_teams) {
      const std::int64_t most = kBlocks / std::max<std::int64_t>(1, results);
      plan.splits = std::max<std::int64_t>(1, std::min(elements / kBlockElements, most));
    }
    return plan;
  }

  /// The workspace for kValues values a result.
  template <typename Value>
  std::size_t workspace_bytes(int values) const {
    return splits == 1 ? 0 : static_cast<std::size_t>(results * splits * values) * sizeof(Value);
  }
};

/// Adds this thread's share of the units [begin, end) of a row. A unit has kWidth elements. Units are numbered through
/// all segments of the row.
template <int kWidth, int kTeam, typename Row, typename Value, int kValues>
__device__ __forceinline__ void AddUnits(const Row& row, const RowPlan& plan, std::int64_t begin, std::int64_t end,
                                         Value (&values)[kValues]) {
  const std::int64_t units_per_segment = plan.width / kWidth;
  const std::int64_t step_segments = kTeam / units_per_segment;
  const std::int64_t step_units = kTeam % units_per_segment;
  std::int64_t unit = begin + threadIdx.x % kTeam;
  std::int64_t segment = unit / units_per_segment;
  std::int64_t in_segment = unit % units_per_segment;
  for (; unit < end; unit += kTeam) {
    row.Add(segment, in_segment * kWidth, values);
    segment += step_segments;
    in_segment += step_units;
    if (in_segment >= units_per_segment) {
      in_segment -= units_per_segment;
      ++segment;
    }
  }
}

template <int kTeam, typename Op, int kValues, typename Terms, typename Finish>
__global__ void __launch_bounds__(kRowThreads, 2)
    RowReduceKernel(RowPlan plan, Terms terms, Finish finish, typename Op::Value* partial) {
  AwaitEarlierLaunches();
  constexpr int kTeams = kRowThreads / kTeam;
  const std::int64_t units = plan.segments * plan.width / (plan.vectors ? kVector : 1);
  const std::int64_t units_per_split = (units + plan.splits - 1) / plan.splits;
  const std::int64_t split = blockIdx.y;
  const std::int64_t begin = split * units_per_split;
  const std::int64_t end = begin + units_per_split < units ? begin + units_per_split : units;
  std::int64_t result = static_cast<std::int64_t>(blockIdx.x) * kTeams + threadIdx.x / kTeam;
  for (; result < plan.results; result += static_cast<std::int64_t>(gridDim.x) * kTeams) {
    typename Op::Value values[kValues];
    for (int k = 0; k < kValues; ++k) values[k] = Op::Identity();
    if (plan.vectors) {
      AddUnits<kVector, kTeam>(terms.template RowAt<kVector>(result), plan, begin, end, values);
    } else {
      AddUnits<1, kTeam>(terms.template RowAt<1>(result), plan, begin, end, values);
    }
    for (int k = 0; k < kValues; ++k) values[k] = TeamReduce<Op, kTeam>(values[k]);
    if (threadIdx.x % kTeam != 0) continue;
    if (plan.splits == 1) {
      finish(result, values);
    } else {
      for (int k = 0; k < kValues; ++k) partial[(result * kValues + k) * plan.splits + split] = values[k];
    }
  }
}

/// A warp combines a result's partial values.
template <typename Op, int kValues, typename Finish>
__global__ void __launch_bounds__(kRowThreads)
    RowFinishKernel(const typename Op::Value* partial, std::int64_t results, std::int64_t splits, Finish finish) {
  AwaitEarlierLaunches();
  constexpr int kTeams = kRowThreads / kWarpSize;
  std::int64_t result = static_cast<std::int64_t>(blockIdx.x) * kTeams + threadIdx.x / kWarpSize;
  for (; result < results; result += static_cast<std::int64_t>(gridDim.x) * kTeams) {
    typename Op::Value values[kValues];
    for (int k = 0; k < kValues; ++k) {
      values[k] = Op::Identity();
      const typename Op::Value* from = partial + (result * kValues + k) * splits;
      for (std::int64_t split = threadIdx.x % kWarpSize; split < splits; split += kWarpSize) {
        values[k] = Op::Combine(values[k], from[split]);
      }
      values[k] = WarpReduce<Op>(values[k]);
    }
    if (threadIdx.x % kWarpSize == 0) finish(result, values);
  }
}

/// Computes kValues values for each result, each combined by Op (kernels/scalar/reduction.h) from Op::Identity() on.
/// `terms.RowAt<kWidth>(result)` returns a row with `Add(segment, index, Op::Value (&values)[kValues])`. Add adds the
/// terms of elements [index, index + kWidth) of a segment. kWidth is 1 or kVector. `finish(result, values)` is called
/// by one thread a result. `workspace` holds plan.workspace_bytes<Op::Value>(kValues).
template <typename Op, int kValues, typename Terms, typename Finish>
absl::Status RowReduce(LaunchQueue& queue, const RowPlan& plan, const Terms& terms, const Finish& finish,
                       void* workspace) {
  auto* partial = static_cast<typename Op::Value*>(workspace);
  LaunchShape shape;
  shape.threads = kRowThreads;
  if (!plan.block_teams) {
    shape.blocks_x = BlocksFor(plan.results, kRowThreads / kWarpSize);
    return launch(queue, &RowReduceKernel<kWarpSize, Op, kValues, Terms, Finish>, shape, plan, terms, finish, partial);
  }
  shape.blocks_x = BlocksFor(plan.results, 1);
  shape.blocks_y = BlocksFor(plan.splits, 1);
  absl::Status status =
      launch(queue, &RowReduceKernel<kRowThreads, Op, kValues, Terms, Finish>, shape, plan, terms, finish, partial);
  if (!status.ok() || plan.splits == 1) return status;
  shape.blocks_y = 1;
  shape.blocks_x = BlocksFor(plan.results, kRowThreads / kWarpSize);
  return launch(queue, &RowFinishKernel<Op, kValues, Finish>, shape, partial, plan.results, plan.splits, finish);
}

}  // namespace mpc::cuda
