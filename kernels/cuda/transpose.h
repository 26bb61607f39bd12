// The transpose skeleton: any permutation of any element type, planned once. Where the innermost axes of operand and
// result differ, a tile in shared memory makes the accesses to both contiguous. All other transposes gather in the
// widest words.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/storage.h"
#include "kernels/cuda/strided.h"

namespace mpc::cuda {

inline constexpr int kTileThreads = 256;
/// Rows and columns of a tile.
inline constexpr int kTile = 32;
/// A tile pays where both axes have at least half a tile; a channel or three are gathered.
inline constexpr std::int64_t kLeastTileExtent = kTile / 2;

struct TransposePlan {
  /// Rows are contiguous along axis q in the operand and along axis r in the result. Element (q, r) of a plane lies at
  /// q + r * from_stride of the operand and at q * to_stride + r of the result. `planes` are the other axes.
  struct Tiles {
    std::int64_t q = 0, r = 0, from_stride = 0, to_stride = 0;
    std::int64_t planes = 0;
    PairedOffsets offsets;
  };
  bool tiled = false;
  int word_bytes = 0;  ///< bytes of a word: an element, or neighbours of up to sixteen bytes
  std::int64_t words = 0;
  Tiles tiles;
  StridedOffsets gather;
};

/// The plan of a transpose of elements of `element_bytes`, given TransposeView's answer.
inline TransposePlan PlanTranspose(StridedView view, int element_bytes) {
  TransposePlan plan;
  plan.word_bytes = element_bytes;
  const int inner = view.rank - 1;
  // ---- Tiles, where the innermost axes differ
  int q = -1;
  for (int axis = 0; axis < view.rank; ++axis) {
    if (view.strides[axis] == 1) q = axis;
  }
  if (q >= 0 && q != inner && view.extents[q] >= kLeastTileExtent && view.extents[inner] >= kLeastTileExtent) {
    plan.tiled = true;
    plan.words = view.count;
    TransposePlan::Tiles& tiles = plan.tiles;
    tiles.q = view.extents[q];
    tiles.r = view.extents[inner];
    tiles.from_stride = view.strides[inner];
    tiles.planes = view.count / (tiles.q * tiles.r);
    std::int64_t to_stride = tiles.r;
    for (int axis = inner - 1; axis >= 0; --axis) {
      if (axis == q) {
        tiles.to_stride = to_stride;
      } else {
        tiles.offsets.Add(view.extents[axis], view.strides[axis], to_stride);
      }
      to_stride *= view.extents[axis];
    }
    return plan;
  }
  // ---- Else a gather of the widest words
  const auto widens = [&] {
    if (inner < 0 || view.strides[inner] != 1 || view.extents[inner] % 2 != 0 || plan.word_bytes == 16) return false;
    for (int axis = 0; axis < inner; ++axis) {
      if (view.strides[axis] % 2 != 0) return false;
    }
    return true;
  };
  while (widens()) {
    view.extents[inner] /= 2;
    for (int axis = 0; axis < inner; ++axis) view.strides[axis] /= 2;
    view.count /= 2;
    plan.word_bytes *= 2;
  }
  plan.words = view.count;
  plan.gather = StridedOffsets(view);
  return plan;
}

template <typename Word>
__global__ void __launch_bounds__(kTileThreads)
    TransposeTilesKernel(TransposePlan::Tiles tiles, const Word* from, Word* to) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(Word, tile, kTile * (kTile + 1));  // one more a row: a column's words lie in different banks
  constexpr int kRows = kTileThreads / kTile;
  constexpr int kEach = kTile / kRows;  // words of a thread
  const int lane = static_cast<int>(threadIdx.x) % kTile;
  const int row = static_cast<int>(threadIdx.x) / kTile;
  const std::int64_t q_tiles = (tiles.q + kTile - 1) / kTile;
  const std::int64_t r_tiles = (tiles.r + kTile - 1) / kTile;
  const std::int64_t count = tiles.planes * q_tiles * r_tiles;
  for (std::int64_t index = blockIdx.x; index < count; index += gridDim.x) {
    // ---- The tile and its place
    const std::int64_t plane = index / (q_tiles * r_tiles);
    const std::int64_t in_plane = index - plane * q_tiles * r_tiles;
    const std::int64_t q_begin = in_plane % q_tiles * kTile;
    const std::int64_t r_begin = in_plane / q_tiles * kTile;
    std::int64_t from_offset = 0, to_offset = 0;
    tiles.offsets.Advance(plane, from_offset, to_offset);
    // ---- Rows of the operand into shared memory
    if (q_begin + lane < tiles.q) {
      const Word* source = from + from_offset + q_begin + lane;
      Word words[kEach];  // all of them are on their way before the first is stored
      MPC_UNROLL
      for (int n = 0; n < kEach; ++n) {
        const std::int64_t r = r_begin + row + n * kRows;
        words[n] = r < tiles.r ? source[r * tiles.from_stride] : Word{};
      }
      MPC_UNROLL
      for (int n = 0; n < kEach; ++n) tile[(row + n * kRows) * (kTile + 1) + lane] = words[n];
    }
    __syncthreads();
    // ---- Columns of the tile into rows of the result
    if (r_begin + lane < tiles.r) {
      Word* target = to + to_offset + r_begin + lane;
      for (int i = row; i < kTile && q_begin + i < tiles.q; i += kRows) {
        target[(q_begin + i) * tiles.to_stride] = tile[lane * (kTile + 1) + i];
      }
    }
    __syncthreads();
  }
}

template <typename Word>
__global__ void __launch_bounds__(kTileThreads)
    GatherWordsKernel(StridedOffsets offsets, const Word* from, Word* to, std::int64_t count) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    to[i] = from[offsets.OffsetAt(i)];
  }
}

template <typename Word>
absl::Status TransposeWords(LaunchQueue& queue, const TransposePlan& plan, const void* from, void* to) {
  LaunchShape shape;
  shape.threads = kTileThreads;
  const Word* source = static_cast<const Word*>(from);
  Word* target = static_cast<Word*>(to);
  if (!plan.tiled) {
    shape.blocks_x = BlocksFor(plan.words, kTileThreads);
    return launch(queue, &GatherWordsKernel<Word>, shape, plan.gather, source, target, plan.words);
  }
  const TransposePlan::Tiles& tiles = plan.tiles;
  shape.blocks_x = BlocksFor(tiles.planes * ((tiles.q + kTile - 1) / kTile) * ((tiles.r + kTile - 1) / kTile), 1);
  return launch(queue, &TransposeTilesKernel<Word>, shape, tiles, source, target);
}

/// Both tensors are 16-byte aligned and do not overlap.
inline absl::Status Transpose(LaunchQueue& queue, const TransposePlan& plan, const void* from, void* to) {
  switch (plan.word_bytes) {
    case 1:
      return TransposeWords<std::uint8_t>(queue, plan, from, to);
    case 2:
      return TransposeWords<std::uint16_t>(queue, plan, from, to);
    case 4:
      return TransposeWords<std::uint32_t>(queue, plan, from, to);
    case 8:
      return TransposeWords<std::uint64_t>(queue, plan, from, to);
    default:
      return TransposeWords<Bits128>(queue, plan, from, to);
  }
}

}  // namespace mpc::cuda
