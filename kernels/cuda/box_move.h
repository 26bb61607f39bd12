// The box skeleton: elements of boxes move from tensor to tensor, as bits where both have one type, else rounded once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/box.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/strided.h"
#include "kernels/words.h"

namespace mpc::cuda {

/// Elements of `from` to elements of `to`, both of one type, or each of type f32, f16 or bf16. A unit is one element,
/// or kVector neighbours.
struct Mover {
  Source from;
  Sink to;
  int unit;   ///< elements of a unit: 1 or kVector
  int bytes;  ///< bytes of an element where bits move, both types being one; 0 where values are rounded

  /// Without the tensors' addresses.
  static Mover Of(DType from, DType to, int unit) {
    return {{nullptr, from}, {nullptr, to}, unit, from == to ? static_cast<int>(ElementSize(to)) : 0};
  }

  /// Moves the unit that begins at element `from_index` to element `to_index`. Both are multiples of `unit`.
  __device__ __forceinline__ void Move(std::int64_t from_index, std::int64_t to_index) const {
    if (unit == 1) {
      MoveElements<1>(from_index, to_index);
    } else {
      MoveElements<kVector>(from_index, to_index);
    }
  }

 private:
  template <int kWidth>
  __device__ __forceinline__ void MoveElements(std::int64_t from_index, std::int64_t to_index) const {
    if (bytes != 0) {
      CopyElements<kWidth>(bytes, from.data, from_index, to.data, to_index);
    } else {
      float values[kWidth];
      LoadElements(from, from_index, values);
      StoreElements(to, to_index, values);
    }
  }
};

/// A Box between two tensors.
struct BoxMove {
  Mover mover;
  std::int64_t from_offset, to_offset;  ///< the box's first element in either tensor
  std::int64_t units;                   ///< units of the whole box
  PairedOffsets offsets;                ///< from the number of a unit to offsets in elements
};

/// Boxes that one launch moves: blockIdx.y chooses.
template <int kBoxes>
struct BoxMoves {
  BoxMove boxes[kBoxes];
};
/// Boxes of one launch where there are several: the parameters of a kernel have 4 KiB.
inline constexpr int kManyBoxes = 12;

/// Moves the boxes, one a row of the grid. Threads share the units of a box.
template <int kBoxes>
__global__ void __launch_bounds__(kMapThreads) MoveBoxesKernel(BoxMoves<kBoxes> moves) {
  AwaitEarlierLaunches();
  const BoxMove& box = moves.boxes[kBoxes == 1 ? 0 : blockIdx.y];
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < box.units; i += threads) {
    std::int64_t from = box.from_offset, to = box.to_offset;
    box.offsets.Advance(i, from, to);
    box.mover.Move(from, to);
  }
}

/// Plans how `spec` moves `box`, without the tensors' addresses. It moves in vectors where every run begins and ends at
/// multiples of kVector in both tensors. `spec` names the operation in errors. Errors: UNIMPLEMENTED for types that a
/// Mover does not take, and beyond eight merged axes, the run among them.
inline absl::StatusOr<BoxMove> PlanBox(const KernelSpec& spec, const Box& box, DType from, DType to) {
  if (!CanMove(from, to)) return UnsupportedTypes(spec);
  bool vectors = box.run % kVector == 0 && box.from_offset % kVector == 0 && box.to_offset % kVector == 0;
  for (const Box::Axis& axis : box.axes) {
    vectors = vectors && axis.from_stride % kVector == 0 && axis.to_stride % kVector == 0;
  }
  BoxMove move{};
  move.mover = Mover::Of(from, to, vectors ? kVector : 1);
  move.from_offset = box.from_offset;
  move.to_offset = box.to_offset;
  move.units = box.rows * box.run / move.mover.unit;
  bool fits = move.offsets.Add(box.run / move.mover.unit, move.mover.unit, move.mover.unit);
  for (const Box::Axis& axis : box.axes) {
    fits = fits && move.offsets.Add(axis.extent, axis.from_stride, axis.to_stride);
  }
  if (!fits) {
    return absl::UnimplementedError(
        absl::StrCat("mpc.", spec.name, " moves at most ", PairedOffsets::kMaxRank, " merged axes on CUDA"));
  }
  return move;
}

/// Moves `count` boxes, at most kBoxes, in one launch; none where all of them are empty.
template <int kBoxes>
absl::Status LaunchMoves(LaunchQueue& queue, const BoxMove* first, int count) {
  BoxMoves<kBoxes> moves{};
  std::int64_t largest = 0;
  for (int i = 0; i < count; ++i) {
    moves.boxes[i] = first[i];
    largest = std::max(largest, first[i].units);
  }
  LaunchShape shape;
  shape.threads = kMapThreads;
  shape.blocks_x = BlocksFor(largest, kMapThreads);
  shape.blocks_y = static_cast<unsigned>(count);
  return launch(queue, &MoveBoxesKernel<kBoxes>, shape, moves);
}

/// Moves the boxes, in as many launches as their parameters need; none for no boxes.
inline absl::Status MoveBoxes(LaunchQueue& queue, const std::vector<BoxMove>& moves) {
  const int count = static_cast<int>(moves.size());
  if (count == 1) return LaunchMoves<1>(queue, moves.data(), 1);
  for (int first = 0; first < count; first += kManyBoxes) {
    absl::Status status = LaunchMoves<kManyBoxes>(queue, moves.data() + first, std::min(kManyBoxes, count - first));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace mpc::cuda
