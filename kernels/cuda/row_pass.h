// Passes over whole rows that later passes need again: normalisation, softmax. A team of threads, a warp or a block,
// holds a row of one or several operands in its registers. A row too long for that is read again in every pass, mostly
// from the second-level cache. A thread meets its elements in the same order in every pass. It writes only after the
// reads of the last pass, so that a result may lie where an operand does.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/storage.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::cuda {

/// kTeam threads take a row, kVectors vectors each at a time. kResident: these are the whole row.
template <int kTeam, int kVectors, bool kResident>
struct RowTeam {
  /// Positions in a row.
  using Index = std::conditional_t<kResident, int, std::int64_t>;
  static constexpr int kThreadsOfTeam = kTeam;
  static constexpr int kVectorsOfThread = kVectors;
  static constexpr bool kIsResident = kResident;
  static constexpr int kCapacity = kTeam * kVectors * kVector;
  static constexpr int kBlockThreads = kTeam < 256 ? 256 : kTeam;
  /// The blocks that a multiprocessor should hold. More of them would leave a thread fewer registers, which would not
  /// pay.
  static constexpr int kBlocksAtOnce = 512 / kBlockThreads;
  static constexpr int kTeamsOfBlock = kBlockThreads / kTeam;

  template <typename Op>
  __device__ static __forceinline__ typename Op::Value Reduce(typename Op::Value value) {
    return TeamReduce<Op, kTeam>(value);
  }

  /// The first row of this thread's team, and how many rows on its next one is.
  __device__ static __forceinline__ std::int64_t FirstRow() {
    return static_cast<std::int64_t>(blockIdx.x) * kTeamsOfBlock + threadIdx.x / kTeam;
  }
  __device__ static __forceinline__ std::int64_t RowStep() {
    return static_cast<std::int64_t>(gridDim.x) * kTeamsOfBlock;
  }

  __device__ static __forceinline__ bool IsFirstThread() { return threadIdx.x % kTeam == 0; }

  static LaunchShape ShapeFor(std::int64_t rows) {
    LaunchShape shape;
    shape.threads = kBlockThreads;
    shape.blocks_x = BlocksFor(rows, kTeamsOfBlock);
    return shape;
  }
};

/// Calls start(team) with the team for rows of `width` elements.
template <typename Start>
absl::Status WithRowTeam(std::int64_t width, const Start& start) {
  using Warp = RowTeam<kWarpSize, 4, true>;
  using Block = RowTeam<256, 4, true>;
  using LongRow = RowTeam<512, 2, false>;
  if (width <= Warp::kCapacity) return start(Warp());
  if (width <= Block::kCapacity) return start(Block());
  return start(LongRow());
}

/// Up to kVector elements of a row that a thread handles together: `count` of them are at first, first + step, ...
template <typename Index>
struct RowVector {
  Index first;
  int step;  ///< 1: a whole vector
  int count;

  __device__ __forceinline__ Index IndexOf(int element) const { return first + element * step; }
  /// The elements of a tensor whose row begins at `base`; what lies beyond the row is 0.
  __device__ __forceinline__ void Load(const Source& x, std::int64_t base, float (&values)[kVector]) const {
    if (step == 1) {
      x.LoadVector(base + first, values);
      return;
    }
    for (int element = 0; element < kVector; ++element)
      values[element] = element < count ? x.Load(base + IndexOf(element)) : 0.0f;
  }
  __device__ __forceinline__ void Store(const Sink& y, std::int64_t base, const float (&values)[kVector]) const {
    if (step == 1) {
      y.StoreVector(base + first, values);
      return;
    }
    for (int element = 0; element < kVector; ++element) {
      if (element < count) y.Store(base + IndexOf(element), values[element]);
    }
  }
};

/// One row of kOperands tensors. It is read in vectors where `base` and `width` are multiples of kVector.
template <typename Team, int kOperands>
class Row {
 public:
  __device__ __forceinline__ Row(const Source (&operands)[kOperands], std::int64_t base, std::int64_t width)
      : base_(base), width_(static_cast<Index>(width)), vectors_((base | width) % kVector == 0) {
    for (int k = 0; k < kOperands; ++k) operands_[k] = operands[k];
    if constexpr (Team::kIsResident) Read(0);
  }

  /// visit(elements, x): x[k][i] is operand k's element elements.IndexOf(i), for i < elements.count.
  template <typename Visit>
  __device__ __forceinline__ void ForEach(const Visit& visit) {
    if constexpr (Team::kIsResident) {
      VisitChunk(0, visit);
    } else {
      for (Index start = 0; start < width_; start += Team::kCapacity) {
        Read(start);
        VisitChunk(start, visit);
      }
    }
  }

  /// visit(elements), for what lies elsewhere by the same positions: the operands are not read.
  template <typename Visit>
  __device__ __forceinline__ void ForEachRowVector(const Visit& visit) const {
    for (Index start = 0; start < width_; start += Team::kCapacity) {
      MPC_UNROLL for (int vector = 0; vector < kVectors; ++vector) {
        const Vector elements = VectorOf(start, vector);
        if (elements.count > 0) visit(elements);
      }
    }
  }

  /// result(elements, x, y) computes the row of `sink`.
  template <typename Result>
  __device__ __forceinline__ void Write(const Sink& sink, const Result& result) {
    ForEach([&](const Vector& elements, const float(&x)[kOperands][kVector]) {
      float y[kVector];
      result(elements, x, y);
      elements.Store(sink, base_, y);
    });
  }

  __device__ __forceinline__ std::int64_t base() const { return base_; }

 private:
  using Index = typename Team::Index;
  using Vector = RowVector<Index>;
  static constexpr int kTeam = Team::kThreadsOfTeam;
  static constexpr int kVectors = Team::kVectorsOfThread;

  /// Vector `vector` of this thread in the chunk that begins at `start`. Vectors lie side by side in a team; so do the
  /// elements of rows that are not made of vectors.
  __device__ __forceinline__ Vector VectorOf(Index start, int vector) const {
    const int lane = static_cast<int>(threadIdx.x) % kTeam;
    Vector elements;
    if (vectors_) {
      elements.first = start + (vector * kTeam + lane) * kVector;
      elements.step = 1;
      elements.count = elements.first < width_ ? kVector : 0;
    } else {
      elements.first = start + vector * kTeam * kVector + lane;
      elements.step = kTeam;
      const Index left = (width_ - elements.first + kTeam - 1) / kTeam;
      elements.count = static_cast<int>(left < 0 ? 0 : (left < kVector ? left : kVector));
    }
    return elements;
  }

  __device__ __forceinline__ void Read(Index start) {
    MPC_UNROLL for (int vector = 0; vector < kVectors; ++vector) {
      const Vector elements = VectorOf(start, vector);
      if (elements.count == 0) continue;
      for (int k = 0; k < kOperands; ++k) elements.Load(operands_[k], base_, values_[vector][k]);
    }
  }

  template <typename Visit>
  __device__ __forceinline__ void VisitChunk(Index start, const Visit& visit) {
    MPC_UNROLL for (int vector = 0; vector < kVectors; ++vector) {
      const Vector elements = VectorOf(start, vector);
      if (elements.count > 0) visit(elements, values_[vector]);
    }
  }

  Source operands_[kOperands];
  std::int64_t base_;
  Index width_;
  bool vectors_;
  float values_[kVectors][kOperands][kVector];
};

/// The largest element of a row, ignoring NaN, and the sum of exp(x - largest), which a NaN makes NaN.
struct ExpSum {
  float largest, sum;

  /// The whole team gets it.
  template <typename Team>
  __device__ static __forceinline__ ExpSum Create(Row<Team, 1>& row) {
    using scalar::MaxNumOp;
    ExpSum result{MaxNumOp::Identity(), 0};
    if constexpr (Team::kIsResident) {
      row.ForEach([&](const auto& elements, const float(&x)[1][kVector]) {
        for (int i = 0; i < kVector; ++i) {
          if (i < elements.count) result.largest = MaxNumOp::Combine(result.largest, x[0][i]);
        }
      });
      result.largest = Team::template Reduce<MaxNumOp>(result.largest);
      row.ForEach([&](const auto& elements, const float(&x)[1][kVector]) {
        for (int i = 0; i < kVector; ++i) {
          if (i < elements.count) result.sum += scalar::Exp(x[0][i] - result.largest);
        }
      });
    } else {
      // One pass instead of two: what has been summed is rescaled when a larger element appears (Milakov and Gimelshein
      // 2018, "Online normalizer calculation for softmax"). A thread rescales at most once per vector. So the error of
      // a row of n elements grows by less than n / 400 roundings.
      row.ForEach([&](const auto& elements, const float(&x)[1][kVector]) {
        float largest = result.largest;
        for (int i = 0; i < kVector; ++i) {
          if (i < elements.count) largest = MaxNumOp::Combine(largest, x[0][i]);
        }
        if (largest > result.largest) result.sum *= scalar::Exp(result.largest - largest);
        result.largest = largest;
        // As long as there is nothing but -infinity, its share is 0 and not NaN.
        const float shift = largest == MaxNumOp::Identity() ? 0.0f : largest;
        for (int i = 0; i < kVector; ++i) {
          if (i < elements.count) result.sum += scalar::Exp(x[0][i] - shift);
        }
      });
      const float mine = result.largest;
      result.largest = Team::template Reduce<MaxNumOp>(mine);
      result.sum *= scalar::Exp(mine - result.largest);
    }
    result.sum = Team::template Reduce<scalar::SumOp<float>>(result.sum);
    return result;
  }
};

}  // namespace mpc::cuda
