// Products of few elements. ProductKernel has too few tiles there: each of them would take the summation index step by
// step and wait for memory in each step. Here a block computes a small tile. It loads 128 positions of the summation
// index at once, and four neighbouring threads share each result. Their sums are added in a fixed order.
//
// A result `Result` has
//
//   float Addend(int64 batch, int64 row, int64 column) const      What is added to the sum: read while the block waits.
//   void StoreOne(int64 batch, int64 row, int64 column, float sum, float addend) const
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/split_product.h"
#include "kernels/cuda/tile_product.h"

namespace mpc::cuda {

struct SmallTile {
  static constexpr int kTile = 16;    ///< rows and columns
  static constexpr int kDepth = 128;  ///< positions of the summation index at a time
  static constexpr int kParts = 4;    ///< neighbouring threads that share results
  static constexpr int kEach = 2;     ///< rows and columns of a thread
  static constexpr int kPlaces = kTile / kEach;
  static constexpr int kThreads = kPlaces * kPlaces * kParts;
  /// Quads from a row to the next. Two rows of four neighbouring quads lie in different banks.
  static constexpr int kPitch = kDepth / 4 + 4;
  static_assert(kTile * kDepth == kVector * kThreads, "a thread brings a vector of each operand");
};

/// True where tiles of ProductKernel would leave most of the device idle, and the summation index is short.
inline bool IsSmallProduct(const Target& target, const ProductShape& shape) {
  constexpr std::int64_t kMostDepth = 4 * SmallTile::kDepth;
  constexpr int kTile = SmallTile::kTile;
  const std::int64_t tiles = shape.batch * ((shape.rows + kTile - 1) / kTile) * ((shape.columns + kTile - 1) / kTile);
  return shape.depth <= kMostDepth && tiles <= 4 * static_cast<std::int64_t>(target.multiprocessors);
}

/// Eight neighbouring elements as they are stored, each in a word or two in one. Nothing waits for them before they are
/// widened: the compiler moves no load over a branch on the type.
struct RawVector {
  std::uint32_t words[kVector];
};

/// As Matrix::Load.
__device__ __forceinline__ RawVector LoadRaw(const Matrix& matrix, const Matrix::Cursor& cursor, std::int64_t k,
                                             std::int64_t end) {
  RawVector raw{};
  if (cursor.outer >= matrix.outers || k >= end) return raw;
  const std::int64_t room = matrix.along_depth() ? end - k : matrix.outers - cursor.outer;
  const std::int64_t index = cursor.offset + k * matrix.depth_stride;
  const bool wide = matrix.data.dtype == DType::kF32;
  if (matrix.vectors) {
    const auto* from = reinterpret_cast<const Bits128*>(static_cast<const unsigned char*>(matrix.data.data) +
                                                        index * (wide ? sizeof(float) : sizeof(std::uint16_t)));
    const Bits128 low = from[0];
    const Bits128 high = wide ? from[1] : Bits128{};
    for (int i = 0; i < 4; ++i) {
      raw.words[i] = low.words[i];
      raw.words[4 + i] = high.words[i];
    }
  } else if (wide) {
    const auto* from = static_cast<const std::uint32_t*>(matrix.data.data) + index;
    for (int i = 0; i < kVector; ++i) raw.words[i] = i < room ? from[i] : 0u;
  } else {
    const auto* from = static_cast<const std::uint16_t*>(matrix.data.data) + index;
    for (int i = 0; i < kVector; ++i) raw.words[i] = i < room ? from[i] : 0u;
  }
  return raw;
}

__device__ __forceinline__ void WidenRaw(const Matrix& matrix, const RawVector& raw, float (&values)[kVector]) {
  if (matrix.data.dtype == DType::kF32) {
    for (int i = 0; i < kVector; ++i) values[i] = std::bit_cast<float>(raw.words[i]);
  } else if (matrix.vectors) {
    for (int i = 0; i < kVector; ++i) {
      values[i] = matrix.data.Widen(static_cast<std::uint16_t>(raw.words[i / 2] >> (i % 2 * 16)));
    }
  } else {
    for (int i = 0; i < kVector; ++i) values[i] = matrix.data.Widen(static_cast<std::uint16_t>(raw.words[i]));
  }
}

/// A thread's share of an operand's 16 rows (or columns), on its way to shared memory as [row][k].
class SmallTileLoader {
 public:
  __device__ SmallTileLoader(const Matrix& operand, std::int64_t batch, std::int64_t first)
      : operand_(operand),
        outer_(operand.along_depth() ? static_cast<int>(threadIdx.x) / kAlongDepth
                                     : static_cast<int>(threadIdx.x) % kAcross * kVector),
        depth_(operand.along_depth() ? static_cast<int>(threadIdx.x) % kAlongDepth * kVector
                                     : static_cast<int>(threadIdx.x) / kAcross),
        cursor_(operand.CursorAt(batch, first + outer_)) {}

  __device__ __forceinline__ void Read(std::int64_t k, std::int64_t end) {
    raw_ = LoadRaw(operand_, cursor_, k + depth_, end);
  }
  __device__ __forceinline__ void Write(Quad* shared) const {
    float x[kVector];
    WidenRaw(operand_, raw_, x);
    if (operand_.along_depth()) {
      Quad* const to = shared + outer_ * SmallTile::kPitch + depth_ / 4;
      to[0] = {{x[0], x[1], x[2], x[3]}};
      to[1] = {{x[4], x[5], x[6], x[7]}};
    } else {
      float* const to = reinterpret_cast<float*>(shared + outer_ * SmallTile::kPitch) + depth_;
      for (int i = 0; i < kVector; ++i) to[i * SmallTile::kPitch * 4] = x[i];
    }
  }

 private:
  static constexpr int kAlongDepth = SmallTile::kDepth / kVector;  ///< vectors of a row
  static constexpr int kAcross = SmallTile::kTile / kVector;       ///< vectors of a position

  const Matrix& operand_;
  int outer_, depth_;
  Matrix::Cursor cursor_;
  RawVector raw_;
};

/// Block (row tile, column tile, product).
template <typename Result>
__global__ void __launch_bounds__(SmallTile::kThreads, 2)
    SmallProductKernel(Matrix left, Matrix right, Result result, ProductShape shape) {
  AwaitEarlierLaunches();
  constexpr int kEach = SmallTile::kEach;
  constexpr int kPlaces = SmallTile::kPlaces;
  constexpr int kPitch = SmallTile::kPitch;
  MPC_SHARED_ARRAY(Quad, rows, SmallTile::kTile * kPitch);
  MPC_SHARED_ARRAY(Quad, columns, SmallTile::kTile * kPitch);
  const int part = static_cast<int>(threadIdx.x) % SmallTile::kParts;
  const int column_place = static_cast<int>(threadIdx.x) / SmallTile::kParts % kPlaces;
  const int row_place = static_cast<int>(threadIdx.x) / (SmallTile::kParts * kPlaces);
  const std::int64_t batch = blockIdx.z;
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * SmallTile::kTile;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.y) * SmallTile::kTile;
  SmallTileLoader left_loader(left, batch, first_row);
  SmallTileLoader right_loader(right, batch, first_column);
  left_loader.Read(0, shape.depth);
  right_loader.Read(0, shape.depth);
  // The result that this thread stores: each of the four threads has one of their four.
  const std::int64_t row = first_row + row_place + part / kEach * kPlaces;
  const std::int64_t column = first_column + column_place + part % kEach * kPlaces;
  const bool inside = row < shape.rows && column < shape.columns;
  const float addend = inside ? result.Addend(batch, row, column) : 0.0f;
  // ---- Sums of the thread: every fourth quad of the summation index
  float sums[kEach][kEach] = {};
  for (std::int64_t k = 0; k < shape.depth; k += SmallTile::kDepth) {
    __syncthreads();
    left_loader.Write(rows);
    right_loader.Write(columns);
    __syncthreads();
    if (k + SmallTile::kDepth < shape.depth) {
      left_loader.Read(k + SmallTile::kDepth, shape.depth);
      right_loader.Read(k + SmallTile::kDepth, shape.depth);
    }
    // Zeros fill the tile to its end.
    const std::int64_t rest = shape.depth - k;
    const int quads = rest < SmallTile::kDepth ? static_cast<int>(rest + 3) / 4 : SmallTile::kDepth / 4;
#pragma unroll 4
    for (int quad = part; quad < quads; quad += SmallTile::kParts) {
      Quad a[kEach], b[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        a[i] = rows[(row_place + i * kPlaces) * kPitch + quad];
        b[i] = columns[(column_place + i * kPlaces) * kPitch + quad];
      }
#pragma unroll
      for (int r = 0; r < kEach; ++r) {
#pragma unroll
        for (int c = 0; c < kEach; ++c) {
          for (int i = 0; i < 4; ++i) sums[r][c] = std::fma(a[r].values[i], b[c].values[i], sums[r][c]);
        }
      }
    }
  }
  // ---- Sums of the four threads
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kEach * kEach; ++i) {
    float value = sums[i / kEach][i % kEach];
    for (int lanes = SmallTile::kParts / 2; lanes > 0; lanes /= 2) value += __shfl_xor_sync(kFullWarp, value, lanes);
    if (i == part) sum = value;
  }
  if (inside) result.StoreOne(batch, row, column, sum, addend);
}

/// result = left right, for shapes that IsSmallProduct takes.
template <typename Result>
absl::Status EnqueueSmallProduct(LaunchQueue& queue, const ProductShape& product, const Matrix& left,
                                 const Matrix& right, const Result& result) {
  LaunchShape shape;
  shape.threads = SmallTile::kThreads;
  shape.blocks_x = BlocksFor(product.rows, SmallTile::kTile);
  shape.blocks_y = BlocksFor(product.columns, SmallTile::kTile);
  shape.blocks_z = static_cast<unsigned>(product.batch);
  return launch(queue, &SmallProductKernel<Result>, shape, left, right, result, product);
}

}  // namespace mpc::cuda
