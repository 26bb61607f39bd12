// Matrix products from tiles in shared memory. A block computes a square tile of the result, and each thread four by
// four elements of it. Sums are f32, in the order of the summation index. An operand is whatever gives eight
// neighbouring elements: a stored matrix, the windows of an image, a tile that the block itself computed.
//
// With the windows of an image as an operand, a convolution is a product whose im2col matrix is never stored: Chetlur
// et al. 2014, "cuDNN: efficient primitives for deep learning". Tensor cores are not used.
//
// An operand `Operand` of a product over k has
//   Cursor                                        What a thread keeps about its row (left) or column (right).
//   bool along_depth() const                      Whether eight neighbours differ in k, else in the row or column.
//   Cursor CursorAt(int64 batch, int64 outer) const     `outer` is a row or column, a multiple of 8 unless
//   along_depth(). void Load(const Cursor&, int64 k, int64 end, float (&values)[8]) const
//                                                 Loads elements from k on, a multiple of 8 if along_depth().
//                                                 From `end` on and beyond the last row it gives zeros.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/storage.h"

namespace mpc::cuda {

/// Four neighbours, moved by one instruction.
struct alignas(16) Quad {
  float values[4];
};

/// A tile of kTile x kTile results and what it keeps of its operands at a time.
template <int kTile>
struct Tile {
  static constexpr int kDepth = 32;
  static constexpr int kThreads = kTile / 4 * (kTile / 4);
  /// Quads from one k to the next: one more than there are, so that neighbours in k lie in other banks.
  static constexpr int kPitch = kTile / 4 + 1;
  /// Quads of shared memory that an operand takes.
  static constexpr int kQuads = kDepth * kPitch;
  /// Vectors of an operand's tile that a thread brings.
  static constexpr int kVectors = kTile * kDepth / kVector / kThreads;
};

/// Elements [index, index + count) for count <= 8, and zeros.
__device__ __forceinline__ void LoadSome(const Source& source, std::int64_t index, int count,
                                         float (&values)[kVector]) {
  if (source.dtype == DType::kF32) {
    const float* from = static_cast<const float*>(source.data) + index;
    for (int i = 0; i < kVector; ++i) values[i] = i < count ? from[i] : 0.0f;
  } else {
    // All are loaded before the first is widened: loads are not moved over the branch on the type.
    const auto* from = static_cast<const std::uint16_t*>(source.data) + index;
    std::uint16_t bits[kVector];
    for (int i = 0; i < kVector; ++i) bits[i] = i < count ? from[i] : std::uint16_t{0};
    for (int i = 0; i < kVector; ++i) values[i] = source.Widen(bits[i]);
  }
}

/// Stores the first `count` of four neighbours; `aligned` says that `index` is a multiple of four.
__device__ __forceinline__ void StoreSome(const Sink& sink, std::int64_t index, int count, bool aligned,
                                          const float (&values)[4]) {
  if (!aligned || count < 4) {
    for (int i = 0; i < 4; ++i) {
      if (i < count) sink.Store(index + i, values[i]);
    }
  } else if (sink.dtype == DType::kF32) {
    *reinterpret_cast<Quad*>(static_cast<float*>(sink.data) + index) = {{values[0], values[1], values[2], values[3]}};
  } else {
    struct alignas(8) Packed {
      std::uint16_t values[4];
    };
    *reinterpret_cast<Packed*>(static_cast<std::uint16_t*>(sink.data) + index) = {
        {sink.Round(values[0]), sink.Round(values[1]), sink.Round(values[2]), sink.Round(values[3])}};
  }
}

__device__ __forceinline__ void Clear(float (&values)[kVector]) {
  for (float& value : values) value = 0.0f;
}

/// A stack of stored matrices, one of whose strides is 1: element (outer, k) of matrix `batch` lies at
/// batch * batch_stride + outer * outer_stride + k * depth_stride.
struct Matrix {
  Source data;
  std::int64_t outers;
  std::int64_t batch_stride, outer_stride, depth_stride;
  bool vectors;  ///< runs of eight are whole and aligned

  struct Cursor {
    std::int64_t outer, offset;
  };

  /// Matrices of `outers` rows of `depth` elements, or of `depth` rows of `outers` elements, next to each other.
  static Matrix Create(DType dtype, std::int64_t outers, std::int64_t depth, bool along_depth) {
    return {{nullptr, dtype},         outers,
            outers * depth,           along_depth ? depth : 1,
            along_depth ? 1 : outers, (along_depth ? depth : outers) % kVector == 0};
  }
  Matrix With(const void* address) const {
    Matrix bound = *this;
    bound.data.data = address;
    return bound;
  }

  __device__ bool along_depth() const { return depth_stride == 1; }
  __device__ Cursor CursorAt(std::int64_t batch, std::int64_t outer) const {
    return {outer, batch * batch_stride + outer * outer_stride};
  }
  __device__ void Load(const Cursor& cursor, std::int64_t k, std::int64_t end, float (&values)[kVector]) const {
    const std::int64_t room = along_depth() ? end - k : outers - cursor.outer;
    if (cursor.outer >= outers || k >= end) return Clear(values);
    const std::int64_t index = cursor.offset + k * depth_stride;
    if (vectors) {
      data.LoadVector(index, values);
    } else {
      LoadSome(data, index, room < kVector ? static_cast<int>(room) : kVector, values);
    }
  }
};

/// A thread's share of an operand's tiles, on its way from global to shared memory.
template <int kTile, typename Operand>
class TileLoader {
 public:
  /// Rows (or columns) of `batch` from `first` on, a multiple of kTile.
  __device__ TileLoader(const Operand& operand, std::int64_t batch, std::int64_t first)
      : operand_(operand),
        outer_(
            static_cast<int>(operand.along_depth() ? threadIdx.x % kTile : threadIdx.x % (kTile / kVector) * kVector)),
        depth_(
            static_cast<int>(operand.along_depth() ? threadIdx.x / kTile * kVector : threadIdx.x / (kTile / kVector))),
        depth_step_(operand.along_depth() ? Tile<kTile>::kThreads / kTile * kVector
                                          : Tile<kTile>::kThreads / (kTile / kVector)),
        cursor_(operand.CursorAt(batch, first + outer_)) {}

  __device__ __forceinline__ void Read(std::int64_t k, std::int64_t end) {
#pragma unroll
    for (int v = 0; v < Tile<kTile>::kVectors; ++v) {
      operand_.Load(cursor_, k + depth_ + v * depth_step_, end, values_[v]);
    }
  }

  /// shared[k][outer]
  __device__ __forceinline__ void Write(Quad* shared) const {
    float* const elements = reinterpret_cast<float*>(shared);
#pragma unroll
    for (int v = 0; v < Tile<kTile>::kVectors; ++v) {
      const int k = depth_ + v * depth_step_;
      const float(&x)[kVector] = values_[v];
      if (operand_.along_depth()) {
        for (int i = 0; i < kVector; ++i) elements[(k + i) * Tile<kTile>::kPitch * 4 + outer_] = x[i];
      } else {
        Quad* const to = shared + k * Tile<kTile>::kPitch + outer_ / 4;
        to[0] = {{x[0], x[1], x[2], x[3]}};
        to[1] = {{x[4], x[5], x[6], x[7]}};
      }
    }
  }

 private:
  const Operand& operand_;
  int outer_, depth_, depth_step_;
  typename Operand::Cursor cursor_;
  float values_[Tile<kTile>::kVectors][kVector];
};

/// The four rows and columns, from the tile's first, that this thread computes.
template <int kTile>
__device__ __forceinline__ int ThreadRow() {
  return static_cast<int>(threadIdx.x / (kTile / 4) * 4);
}
template <int kTile>
__device__ __forceinline__ int ThreadColumn() {
  return static_cast<int>(threadIdx.x % (kTile / 4) * 4);
}

/// sums[i][j] += sum over k in [begin, end) of left(row + i, k) * right(column + j, k). The rows and columns are the
/// thread's in the tile at (row, column) of product `batch`. `begin` lies a multiple of 32 behind the operands' first
/// k. Called by all of a block's Tile<kTile>::kThreads threads with two arrays of Tile<kTile>::kQuads in shared memory.
/// What an operand reads from shared memory has been written before a barrier, and may be written again when this
/// returns.
template <int kTile, typename Left, typename Right>
__device__ __forceinline__ void AddTileProduct(const Left& left, const Right& right, std::int64_t batch,
                                               std::int64_t row, std::int64_t column, std::int64_t begin,
                                               std::int64_t end, Quad* shared_left, Quad* shared_right,
                                               float (&sums)[4][4]) {
  constexpr int kDepth = Tile<kTile>::kDepth;
  constexpr int kPitch = Tile<kTile>::kPitch;
  TileLoader<kTile, Left> left_loader(left, batch, row);
  TileLoader<kTile, Right> right_loader(right, batch, column);
  left_loader.Read(begin, end);
  right_loader.Read(begin, end);
  const Quad* const rows = shared_left + ThreadRow<kTile>() / 4;
  const Quad* const columns = shared_right + ThreadColumn<kTile>() / 4;
  for (std::int64_t k = begin; k < end; k += kDepth) {
    __syncthreads();
    left_loader.Write(shared_left);
    right_loader.Write(shared_right);
    __syncthreads();
    if (k + kDepth < end) {
      left_loader.Read(k + kDepth, end);
      right_loader.Read(k + kDepth, end);
    }
    // Zeros fill the tile to its end.
    const int depth = end - k < kDepth ? static_cast<int>(end - k) : kDepth;
    for (int start = 0; start < depth; start += kVector) {
      for (int i = 0; i < kVector; ++i) {
        const Quad a = rows[(start + i) * kPitch];
        const Quad b = columns[(start + i) * kPitch];
        for (int r = 0; r < 4; ++r) {
          for (int c = 0; c < 4; ++c) sums[r][c] = std::fma(a.values[r], b.values[c], sums[r][c]);
        }
      }
    }
  }
}

}  // namespace mpc::cuda
