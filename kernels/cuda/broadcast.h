// Maps over operands that are stretched to the result's shape.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/strided.h"

namespace mpc::cuda {

/// The way an operand's elements repeat, and how eight consecutive elements of the result are read from it.
class BroadcastMap {
 public:
  BroadcastMap() = default;
  /// Errors are BroadcastView's.
  static absl::StatusOr<BroadcastMap> Create(const Shape& operand, const Shape& result) {
    absl::StatusOr<StridedView> view = BroadcastView(operand, result);
    if (!view.ok()) return view.status();
    BroadcastMap map;
    map.offsets_ = StridedOffsets(*view);
    map.access_ = AccessOf(*view);
    return map;
  }

  bool is_identity() const { return access_ == Access::kIdentity; }

  /// Where result element `index` lies in the operand.
  __device__ __forceinline__ std::int64_t OffsetAt(std::int64_t index) const {
    return access_ == Access::kIdentity ? index : offsets_.OffsetAt(index);
  }

  /// Loads values[i] for result elements [index, index + kVector), where `index` is a multiple of kVector. load(i)
  /// reads element i of the operand. load_vector(i, values) reads eight elements from i on, which are 16-byte aligned.
  template <typename T, typename LoadOne, typename LoadEight>
  __device__ __forceinline__ void LoadVector(std::int64_t index, T (&values)[kVector], const LoadOne& load,
                                             const LoadEight& load_vector) const {
    if (access_ == Access::kIdentity || access_ == Access::kRun) {
      load_vector(OffsetAt(index), values);
    } else if (access_ == Access::kRepeat) {
      const T value = load(offsets_.OffsetAt(index));
      for (int i = 0; i < kVector; ++i) values[i] = value;
    } else {
      MPC_UNROLL
      for (int i = 0; i < kVector; ++i) values[i] = load(offsets_.OffsetAt(index + i));
    }
  }

 private:
  enum class Access : std::uint8_t {
    kIdentity,  ///< the result's own elements
    kRepeat,    ///< one element eight times: scalars, columns
    kRun,       ///< eight neighbours: rows whose length is a multiple of eight
    kEach,      ///< eight searches
  };

  static Access AccessOf(const StridedView& view) {
    if (view.is_identity()) return Access::kIdentity;
    if (view.is_scalar()) return Access::kRepeat;
    const int inner = view.rank - 1;
    // The outer strides are then multiples of the run, too.
    if (view.extents[inner] % kVector != 0) return Access::kEach;
    if (view.strides[inner] == 0) return Access::kRepeat;
    return Access::kRun;
  }

  StridedOffsets offsets_;
  Access access_ = Access::kIdentity;
};

/// The maps of operands that are stretched to `result`.
template <std::size_t kOperands>
absl::StatusOr<std::array<BroadcastMap, kOperands>> BroadcastMaps(const std::vector<TensorSpec>& operands,
                                                                  const Shape& result) {
  std::array<BroadcastMap, kOperands> maps;
  for (std::size_t i = 0; i < kOperands; ++i) {
    absl::StatusOr<BroadcastMap> map = BroadcastMap::Create(operands[i].shape, result);
    if (!map.ok()) return map.status();
    maps[i] = *map;
  }
  return maps;
}

/// A floating operand seen in the shape of the result.
struct BroadcastSource {
  Source source;
  BroadcastMap map;

  __device__ __forceinline__ float Load(std::int64_t index) const { return source.Load(map.OffsetAt(index)); }
  __device__ __forceinline__ void LoadVector(std::int64_t index, float (&values)[kVector]) const {
    map.LoadVector(
        index, values, [&](std::int64_t i) { return source.Load(i); },
        [&](std::int64_t i, float(&vector)[kVector]) { source.LoadVector(i, vector); });
  }
};

/// An operand of any type seen in the shape of the result. `Word` has the bits of an element.
template <typename Word>
struct WordSource {
  const Word* data;
  BroadcastMap map;

  __device__ __forceinline__ Word Load(std::int64_t index) const { return data[map.OffsetAt(index)]; }
  __device__ __forceinline__ void LoadVector(std::int64_t index, Word (&words)[kVector]) const {
    map.LoadVector(
        index, words, [&](std::int64_t i) { return data[i]; },
        [&](std::int64_t i, Word(&vector)[kVector]) { CopyWords<kVector>(data + i, vector); });
  }
};

/// MapOperands with stretched operands.
template <int kCount>
struct BroadcastOperands {
  static constexpr int kOperands = kCount;
  BroadcastSource x[kCount];
  Sink y;
};

}  // namespace mpc::cuda
