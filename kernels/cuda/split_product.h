// Whole products from the tiles of tile_product.h. Tiles are dealt to blocks. Where there are too few tiles to fill the
// device, the summation index is cut into parts. A second kernel adds the sums of the parts in their order.
//
// A result `Result` has
//
//   void Store(int64 batch, int64 row, int64 column, const float (&sums)[4], int count) const
//                                  Stores the first `count` of four neighbouring columns from `column` on.
//                                  `column` is a multiple of 4 if count is 4.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/tile_product.h"

namespace mpc::cuda {

/// `batch` products of [rows, depth] and [depth, columns].
struct ProductShape {
  std::int64_t batch, rows, columns, depth;
  std::int64_t splits, split_depth;
  std::int64_t row_tiles, column_tiles;

  std::int64_t tiles() const { return batch * row_tiles * column_tiles; }
  MPC_HOST_DEVICE std::int64_t elements() const { return batch * rows * columns; }
};

/// How a product is computed.
struct ProductPlan {
  ProductShape shape;
  int tile;
  /// Bytes of the partial sums; 0 where there are none.
  std::size_t workspace_bytes() const {
    return shape.splits < 2 ? 0 : static_cast<std::size_t>(shape.splits * shape.elements()) * sizeof(float);
  }
};

/// Depends on the shape and the device only: equal products give equal bits. Partial sums take at most `workspace_cap`.
inline ProductPlan PlanProduct(const Target& target, std::size_t workspace_cap, std::int64_t batch, std::int64_t rows,
                               std::int64_t columns, std::int64_t depth) {
  // Parts of fewer positions would cost more to add than to compute.
  constexpr std::int64_t kSmallestPart = 64;
  constexpr std::int64_t kMostParts = 256;
  ProductPlan plan{{batch, rows, columns, depth, 1, depth, 0, 0}, 64};
  ProductShape& shape = plan.shape;
  const auto cut = [&](int tile) {
    plan.tile = tile;
    shape.row_tiles = (rows + tile - 1) / tile;
    shape.column_tiles = (columns + tile - 1) / tile;
  };
  cut(64);
  if (rows <= 32 || columns <= 32 || shape.tiles() < target.multiprocessors) cut(32);
  const std::int64_t wanted = 2 * static_cast<std::int64_t>(target.multiprocessors);
  if (shape.tiles() == 0 || shape.tiles() >= wanted) return plan;
  const std::int64_t fitting = static_cast<std::int64_t>(workspace_cap / sizeof(float)) / shape.elements();
  const std::int64_t parts =
      std::min({(wanted + shape.tiles() - 1) / shape.tiles(), depth / kSmallestPart, fitting, kMostParts});
  if (parts < 2) return plan;
  constexpr std::int64_t kDepth = Tile<64>::kDepth;
  shape.split_depth = ((depth + parts - 1) / parts + kDepth - 1) / kDepth * kDepth;
  shape.splits = (depth + shape.split_depth - 1) / shape.split_depth;
  return plan;
}

template <int kTile, typename Left, typename Right, typename Result>
__global__ void __launch_bounds__(Tile<kTile>::kThreads, 2)
    ProductKernel(Left left, Right right, Result result, float* partials, ProductShape shape) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(Quad, shared_left, Tile<kTile>::kQuads);
  MPC_SHARED_ARRAY(Quad, shared_right, Tile<kTile>::kQuads);
  const std::int64_t items = shape.batch * shape.splits * shape.row_tiles * shape.column_tiles;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    // ---- The tile and the part of the summation index
    std::int64_t rest = item;
    const std::int64_t tile_column = rest % shape.column_tiles * kTile;
    rest /= shape.column_tiles;
    const std::int64_t tile_row = rest % shape.row_tiles * kTile;
    rest /= shape.row_tiles;
    const std::int64_t split = rest % shape.splits;
    const std::int64_t batch = rest / shape.splits;
    const std::int64_t begin = split * shape.split_depth;
    const std::int64_t end = begin + shape.split_depth < shape.depth ? begin + shape.split_depth : shape.depth;
    // ---- Sums of the thread
    float sums[4][4] = {};
    AddTileProduct<kTile>(left, right, batch, tile_row, tile_column, begin, end, shared_left, shared_right, sums);
    // ---- Results, or partial sums
    const std::int64_t column = tile_column + ThreadColumn<kTile>();
    const std::int64_t room = shape.columns - column;
    const int count = room < 4 ? static_cast<int>(room) : 4;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const std::int64_t row = tile_row + ThreadRow<kTile>() + r;
      if (row >= shape.rows || count <= 0) continue;
      if (partials == nullptr) {
        result.Store(batch, row, column, sums[r], count);
      } else {
        float* const to = partials + ((split * shape.batch + batch) * shape.rows + row) * shape.columns + column;
        for (int c = 0; c < 4; ++c) {
          if (c < count) to[c] = sums[r][c];
        }
      }
    }
  }
}

inline constexpr int kSumColumns = 32;  ///< results of a block of SumPartialsKernel
inline constexpr int kSumParts = 16;    ///< threads that share a result
inline constexpr int kSumThreads = kSumColumns * kSumParts;

/// Adds `parts` partial results of the product's shape. Thread p of a result adds parts p, p + 16, ... The sixteen sums
/// are then added in order.
template <typename Result>
__global__ void __launch_bounds__(kSumThreads)
    SumPartialsKernel(const float* partials, std::int64_t parts, Result result, ProductShape shape) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(float, sums, kSumThreads);
  const std::int64_t elements = shape.elements();
  const int part = static_cast<int>(threadIdx.x) / kSumColumns;
  const int place = static_cast<int>(threadIdx.x) % kSumColumns;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kSumColumns;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kSumColumns; first < elements; first += step) {
    const std::int64_t element = first + place;
    float sum = 0.0f;
    if (element < elements) {
#pragma unroll 8
      for (std::int64_t p = part; p < parts; p += kSumParts) sum += partials[p * elements + element];
    }
    __syncthreads();
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (part != 0 || element >= elements) continue;
    for (int p = 1; p < kSumParts; ++p) sum += sums[p * kSumColumns + place];
    const float total[4] = {sum};
    const std::int64_t row = element / shape.columns;
    result.Store(row / shape.rows, row % shape.rows, element % shape.columns, total, 1);
  }
}

template <typename Result>
absl::Status SumPartials(LaunchQueue& queue, const float* partials, std::int64_t parts, const Result& result,
                         const ProductShape& shape) {
  LaunchShape launch_shape;
  launch_shape.threads = kSumThreads;
  launch_shape.blocks_x = BlocksFor(shape.elements(), kSumColumns);
  return launch(queue, &SumPartialsKernel<Result>, launch_shape, partials, parts, result, shape);
}

/// result = left right. `workspace` has plan.workspace_bytes().
template <typename Left, typename Right, typename Result>
absl::Status EnqueueProduct(LaunchQueue& queue, const ProductPlan& plan, const Left& left, const Right& right,
                            const Result& result, void* workspace) {
  const bool split = plan.shape.splits > 1;
  auto* const partials = split ? static_cast<float*>(workspace) : nullptr;
  LaunchShape shape;
  shape.blocks_x = BlocksFor(plan.shape.tiles() * plan.shape.splits, 1);
  shape.threads = plan.tile == 64 ? Tile<64>::kThreads : Tile<32>::kThreads;
  const auto kernel =
      plan.tile == 64 ? &ProductKernel<64, Left, Right, Result> : &ProductKernel<32, Left, Right, Result>;
  absl::Status status = launch(queue, kernel, shape, left, right, result, partials, plan.shape);
  if (!status.ok() || !split) return status;
  return SumPartials(queue, partials, plan.shape.splits, result, plan.shape);
}

}  // namespace mpc::cuda
