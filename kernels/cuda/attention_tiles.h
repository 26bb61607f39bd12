// What attention and its gradient share: tiles of 64 query rows and 64 keys. Tiles are computed again wherever they are
// needed, so that nothing of the size of the scores lies in memory.
//
// Both are related to Dao et al. 2022, "FlashAttention: fast and memory-efficient exact attention with IO-awareness",
// and do more work. The forward pass computes the scores twice, because probabilities are rounded with their final
// norm. Each of the derivative's kernels computes them again.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/attention_geometry.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/tile_product.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::cuda {

inline constexpr int kScoreTile = 64;
inline constexpr int kScoreThreads = Tile<kScoreTile>::kThreads;
inline constexpr float kNoScore = -std::numeric_limits<float>::infinity();

/// Shared memory of a block, in Quads: both operands of a product, and a tile of probabilities or cotangents.
inline constexpr int kOperandQuads = Tile<kScoreTile>::kQuads;
inline constexpr int kScorePitch = kScoreTile / 4 + 1;
inline constexpr int kScoreQuads = kScoreTile * kScorePitch;

/// This thread's four by four elements of a tile.
using Elements = float[4][4];

/// `value` as it is after storage in `dtype`.
__device__ __forceinline__ float RoundThrough(DType dtype, float value) {
  if (dtype == DType::kF32) return value;
  return Source{nullptr, dtype}.Widen(Sink{nullptr, dtype}.Round(value));
}

/// A tile in shared memory as left operand: its rows are the product's, or (transposed) its columns are. `first` is the
/// summation index that its first column (row) stands for.
struct SharedTile {
  const Quad* data;
  bool transposed;
  std::int64_t first;

  struct Cursor {
    int outer;
  };

  __device__ bool along_depth() const { return !transposed; }
  __device__ Cursor CursorAt(std::int64_t, std::int64_t outer) const { return {static_cast<int>(outer)}; }
  __device__ void Load(const Cursor& cursor, std::int64_t k, std::int64_t end, float (&values)[kVector]) const {
    if (k >= end) return Clear(values);
    const int depth = static_cast<int>(k - first);
    const Quad* const from =
        transposed ? data + depth * kScorePitch + cursor.outer / 4 : data + cursor.outer * kScorePitch + depth / 4;
    const Quad low = from[0], high = from[1];
    for (int i = 0; i < 4; ++i) {
      values[i] = low.values[i];
      values[4 + i] = high.values[i];
    }
  }
};

__device__ __forceinline__ void StoreTile(const Elements& elements, Quad* tile) {
  for (int i = 0; i < 4; ++i) {
    tile[(ThreadRow<kScoreTile>() + i) * kScorePitch + ThreadColumn<kScoreTile>() / 4] = {
        {elements[i][0], elements[i][1], elements[i][2], elements[i][3]}};
  }
}

/// Combines the values of the sixteen lanes that share a row of a tile. Each lane gets the same bits.
template <typename Combine>
__device__ __forceinline__ float ReduceRow(float value, const Combine& combine) {
  for (int lanes = kScoreTile / 8; lanes > 0; lanes /= 2) {
    value = combine(value, __shfl_xor_sync(kFullWarp, value, lanes));
  }
  return value;
}

/// The rows of a head, or their transpose, as an operand of a product.
struct HeadMatrix {
  Matrix matrix;  ///< the first head
  HeadRows rows;

  /// `count` rows of `width` elements. Outers are the rows and sums run along them (along_depth), or outers are the
  /// elements and sums run over the rows.
  static HeadMatrix Create(DType dtype, const HeadRows& rows, std::int64_t count, std::int64_t width,
                           bool along_depth) {
    return {{{nullptr, dtype},
             along_depth ? count : width,
             0,
             along_depth ? rows.row_stride : 1,
             along_depth ? 1 : rows.row_stride,
             width % kVector == 0},
            rows};
  }
  HeadMatrix With(const void* address) const { return {matrix.With(address), rows}; }

  using Cursor = Matrix::Cursor;
  __device__ bool along_depth() const { return matrix.along_depth(); }
  __device__ Cursor CursorAt(std::int64_t head, std::int64_t outer) const {
    Cursor cursor = matrix.CursorAt(0, outer);
    cursor.offset += rows.At(head, 0);
    return cursor;
  }
  __device__ void Load(const Cursor& cursor, std::int64_t k, std::int64_t end, float (&values)[kVector]) const {
    matrix.Load(cursor, k, end, values);
  }
};

/// A result whose heads have `count` rows of `width` elements.
struct HeadSink {
  Sink sink;
  HeadRows rows;
  std::int64_t count, width;

  HeadSink With(void* address) const { return {{address, sink.dtype}, rows, count, width}; }
};

/// The scores of query rows against keys.
struct ScoreOperands {
  AttentionGeometry geometry;
  HeadMatrix query, key;
  const std::uint8_t* mask;  ///< null: none

  __device__ bool Allowed(std::int64_t head, std::int64_t row, std::int64_t column) const {
    if (row >= geometry.rows || column >= geometry.ReadableColumns(row)) return false;
    return mask == nullptr || mask[geometry.MaskRow(head, row) + column * geometry.mask_strides[3]] != 0;
  }

  /// The scaled scores of the tile at (row, column); kNoScore where nothing may be read, and beyond the last row.
  __device__ __forceinline__ void Scores(std::int64_t head, std::int64_t row, std::int64_t column, Quad* left,
                                         Quad* right, Elements& scores) const {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) scores[i][j] = 0.0f;
    }
    AddTileProduct<kScoreTile>(query, key, head, row, column, 0, geometry.width, left, right, scores);
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const bool allowed = Allowed(head, row + ThreadRow<kScoreTile>() + i, column + ThreadColumn<kScoreTile>() + j);
        scores[i][j] = allowed ? scores[i][j] * geometry.scale : kNoScore;
      }
    }
  }
};

/// Stores a tile of a result, rounded once.
__device__ __forceinline__ void StoreResult(const HeadSink& result, std::int64_t head, std::int64_t row,
                                            std::int64_t column, const Elements& elements) {
  const std::int64_t first = column + ThreadColumn<kScoreTile>();
  const int count = result.width - first < 4 ? static_cast<int>(result.width - first) : 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::int64_t at = row + ThreadRow<kScoreTile>() + i;
    if (at < result.count && count > 0)
      StoreSome(result.sink, result.rows.At(head, at) + first, count, result.width % 4 == 0, elements[i]);
  }
}

inline std::int64_t TilesOf(std::int64_t extent) { return (extent + kScoreTile - 1) / kScoreTile; }

/// A block's tile of a result with `row_tiles` x `column_tiles` tiles a head.
struct ResultTiles {
  std::int64_t heads, row_tiles, column_tiles;

  MPC_HOST_DEVICE std::int64_t count() const { return heads * row_tiles * column_tiles; }
  __device__ std::int64_t Head(std::int64_t tile) const { return tile / column_tiles / row_tiles; }
  __device__ std::int64_t Row(std::int64_t tile) const { return tile / column_tiles % row_tiles * kScoreTile; }
  __device__ std::int64_t Column(std::int64_t tile) const { return tile % column_tiles * kScoreTile; }
};

/// attention_grad.cu. `spec` is of attention_grad or packed_attention_grad.
absl::StatusOr<std::unique_ptr<Kernel>> CreateAttentionGrad(const KernelSpec& spec, const KernelContext& context);

}  // namespace mpc::cuda
