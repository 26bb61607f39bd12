// reshape, transpose, broadcast_to, concat, split, slice and pad: elements move, nothing is computed. Bits stay as they
// are where both tensors have one type; else values are rounded once.
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/box_move.h"
#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/transpose.h"
#include "kernels/words.h"

namespace mpc::cuda {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> CreateReshape(const KernelSpec& spec, const KernelContext&) {
  if (spec.inputs[0].dtype != spec.outputs[0].dtype) return UnsupportedTypes(spec);
  return MakeKernel([bytes = spec.outputs[0].bytes()](const KernelOperands& operands, LaunchQueue& queue) {
    if (bytes == 0 || operands.inputs[0] == operands.outputs[0]) return absl::OkStatus();
    return queue.Copy(operands.outputs[0], operands.inputs[0], bytes);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateTranspose(const KernelSpec& spec, const KernelContext& context) {
  if (spec.inputs[0].dtype != spec.outputs[0].dtype) return UnsupportedTypes(spec);
  const auto view = TransposeView(spec.inputs[0].shape, spec.attributes.GetInts("permutation"));
  if (!view.ok()) return view.status();
  if (view->is_identity() || view->rank == 0) return CreateReshape(spec, context);
  const TransposePlan plan = PlanTranspose(*view, static_cast<int>(ElementSize(spec.outputs[0].dtype)));
  return MakeKernel([plan](const KernelOperands& operands, LaunchQueue& queue) {
    return Transpose(queue, plan, operands.inputs[0], operands.outputs[0]);
  });
}

struct Identity {
  __device__ float operator()(float x) const { return x; }
};

/// Bits are repeated, never interpreted.
template <typename Word>
__global__ void __launch_bounds__(kMapThreads) BroadcastWordsKernel(WordSource<Word> x, Word* y, std::int64_t count) {
  AwaitEarlierLaunches();
  ForEachVector(
      count,
      [&](std::int64_t first) {
        WordVector<Word> vector;
        x.LoadVector(first, vector.words);
        *reinterpret_cast<WordVector<Word>*>(y + first) = vector;
      },
      [&](std::int64_t i) { y[i] = x.Load(i); });
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> CreateBroadcastOfWords(const BroadcastMap& map, std::int64_t count) {
  return MakeKernel([map, count](const KernelOperands& operands, LaunchQueue& queue) {
    return launch(queue, &BroadcastWordsKernel<Word>, MapShape(count),
                  WordSource<Word>{static_cast<const Word*>(operands.inputs[0]), map},
                  static_cast<Word*>(operands.outputs[0]), count);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateBroadcastTo(const KernelSpec& spec, const KernelContext&) {
  const auto maps = BroadcastMaps<1>(spec.inputs, spec.outputs[0].shape);
  if (!maps.ok()) return maps.status();
  if (const DType dtype = spec.outputs[0].dtype; !IsFloating(dtype)) {
    if (spec.inputs[0].dtype != dtype) return UnsupportedTypes(spec);
    return VisitWord(ElementSize(dtype), [&](auto word) {
      return CreateBroadcastOfWords<decltype(word)>((*maps)[0], spec.outputs[0].num_elements());
    });
  }
  return MakeKernel([map = (*maps)[0], in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    const BroadcastOperands<1> bound{{{{operands.inputs[0], in}, map}}, {operands.outputs[0], out}};
    return MapElements(queue, bound, Identity(), count);
  });
}

std::size_t AxisOf(const KernelSpec& spec, const Shape& shape) {
  const std::int64_t axis = spec.attributes.GetInt("axis");
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConcat(const KernelSpec& spec, const KernelContext&) {
  const Shape& whole = spec.outputs[0].shape;
  const std::size_t axis = AxisOf(spec, whole);
  std::vector<std::int64_t> sizes;
  for (const TensorSpec& input : spec.inputs) sizes.push_back(input.shape[axis]);
  const std::vector<Box> boxes = PartsAlong(axis, whole, sizes, /*joins=*/true);
  std::vector<BoxMove> moves;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    absl::StatusOr<BoxMove> move = PlanBox(spec, boxes[i], spec.inputs[i].dtype, spec.outputs[0].dtype);
    if (!move.ok()) return move.status();
    moves.push_back(*move);
  }
  return MakeKernel([moves](const KernelOperands& operands, LaunchQueue& queue) mutable {
    for (std::size_t i = 0; i < moves.size(); ++i) {
      moves[i].mover.from.data = operands.inputs[i];
      moves[i].mover.to.data = operands.outputs[0];
    }
    return MoveBoxes(queue, moves);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSplit(const KernelSpec& spec, const KernelContext&) {
  const Shape& whole = spec.inputs[0].shape;
  const std::vector<Box> boxes =
      PartsAlong(AxisOf(spec, whole), whole, spec.attributes.GetInts("sizes"), /*joins=*/false);
  std::vector<BoxMove> moves;
  std::vector<std::size_t> results;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (!spec.uses(i)) continue;
    absl::StatusOr<BoxMove> move = PlanBox(spec, boxes[i], spec.inputs[0].dtype, spec.outputs[i].dtype);
    if (!move.ok()) return move.status();
    moves.push_back(*move);
    results.push_back(i);
  }
  return MakeKernel([moves, results](const KernelOperands& operands, LaunchQueue& queue) mutable {
    for (std::size_t i = 0; i < moves.size(); ++i) {
      moves[i].mover.from.data = operands.inputs[0];
      moves[i].mover.to.data = operands.outputs[results[i]];
    }
    return MoveBoxes(queue, moves);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSlice(const KernelSpec& spec, const KernelContext&) {
  const Shape& y = spec.outputs[0].shape;
  const Box box = MakeBox(y, spec.inputs[0].shape, spec.attributes.GetInts("starts"), y, Shape(y.size(), 0));
  const absl::StatusOr<BoxMove> move = PlanBox(spec, box, spec.inputs[0].dtype, spec.outputs[0].dtype);
  if (!move.ok()) return move.status();
  return MakeKernel([move = *move](const KernelOperands& operands, LaunchQueue& queue) {
    BoxMove bound = move;
    bound.mover.from.data = operands.inputs[0];
    bound.mover.to.data = operands.outputs[0];
    return LaunchMoves<1>(queue, &bound, 1);
  });
}

/// The result's axes, innermost first: positions [low, low + extent) hold the operand's elements, all others the value.
struct PadAxes {
  static constexpr int kMaxRank = StridedView::kMaxRank;
  int rank = 0;
  Divisor result[kMaxRank];
  std::int64_t low[kMaxRank] = {};
  std::int64_t extents[kMaxRank] = {};
  std::int64_t strides[kMaxRank] = {};
};

/// `Word` has the bits of an element of the result.
template <typename Word>
__global__ void __launch_bounds__(kMapThreads) PadKernel(PadAxes axes, Mover mover, Word value, std::int64_t units) {
  AwaitEarlierLaunches();
  WordVector<Word> values;
  for (Word& word : values.words) word = value;
  Word* y = static_cast<Word*>(mover.to.data);
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < units; i += threads) {
    std::int64_t rest = i, from = 0;
    bool inside = true;
    for (int axis = 0; axis < axes.rank; ++axis) {
      const std::int64_t outer = axes.result[axis].Quotient(rest);
      const std::int64_t position = rest - outer * axes.result[axis].value() - axes.low[axis];
      inside = inside && position >= 0 && position < axes.extents[axis];
      from += position * axes.strides[axis];
      rest = outer;
    }
    if (inside) {
      mover.Move(from, i * mover.unit);
    } else if (mover.unit == 1) {
      y[i] = value;
    } else {
      reinterpret_cast<WordVector<Word>*>(y)[i] = values;
    }
  }
}

/// Rows that become kVector elements each, as channels of images do: `low` zeros, the operand's, and zeros.
struct PadRows {
  int low, extent;
  std::int64_t rows;
};

/// `Word` has the bits of an element.
template <typename Word>
__global__ void __launch_bounds__(kMapThreads) PadRowsKernel(PadRows pad, const Word* x, Word* y) {
  AwaitEarlierLaunches();
  struct alignas(kVector * sizeof(Word)) Row {
    Word words[kVector];
  };
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; row < pad.rows;
       row += threads) {
    Row padded;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      const int position = i - pad.low;
      padded.words[i] = position >= 0 && position < pad.extent ? x[row * pad.extent + position] : Word(0);
    }
    reinterpret_cast<Row*>(y)[row] = padded;
  }
}

/// An axis of the result and where the operand lies on it. Axes without padding are one with the axis around them.
struct PaddedAxis {
  std::int64_t result, low, extent;
};

/// Innermost first.
std::vector<PaddedAxis> MergedAxes(const KernelSpec& spec) {
  const Shape& x = spec.inputs[0].shape;
  const Shape& y = spec.outputs[0].shape;
  const std::vector<std::int64_t> low = spec.attributes.GetInts("low");
  std::vector<PaddedAxis> merged;
  for (std::size_t axis = x.size(); axis-- > 0;) {
    if (!merged.empty() && merged.back().result == merged.back().extent) {
      const std::int64_t inner = merged.back().result;
      merged.back() = {y[axis] * inner, low[axis] * inner, x[axis] * inner};
    } else {
      merged.push_back({y[axis], low[axis], x[axis]});
    }
  }
  return merged;
}

/// The rows of `axes` where only the innermost axis is padded, to kVector elements.
std::optional<PadRows> RowsOf(const std::vector<PaddedAxis>& axes) {
  if (axes.size() != 2 || axes[0].result != kVector || axes[1].result != axes[1].extent) return std::nullopt;
  return PadRows{static_cast<int>(axes[0].low), static_cast<int>(axes[0].extent), axes[1].result};
}

/// Where the innermost axis is whole vectors, a unit is a vector.
absl::StatusOr<PadAxes> PlanPad(const std::vector<PaddedAxis>& merged, int& unit) {
  if (merged.size() > PadAxes::kMaxRank) {
    return absl::UnimplementedError(absl::StrCat("mpc.pad takes at most ", PadAxes::kMaxRank, " merged axes on CUDA"));
  }
  unit = 1;
  if (!merged.empty()) {
    const PaddedAxis& inner = merged[0];
    if ((inner.result | inner.low | inner.extent) % kVector == 0) unit = kVector;
  }
  PadAxes axes;
  std::int64_t stride = unit;
  for (const PaddedAxis& axis : merged) {
    const std::int64_t units = axes.rank == 0 ? unit : 1;
    axes.result[axes.rank] = Divisor(axis.result / units);
    axes.low[axes.rank] = axis.low / units;
    axes.extents[axes.rank] = axis.extent / units;
    axes.strides[axes.rank] = stride;
    stride *= axes.extents[axes.rank];
    ++axes.rank;
  }
  return axes;
}

template <typename Word>
absl::Status EnqueuePadRows(LaunchQueue& queue, const PadRows& rows, const KernelOperands& operands) {
  LaunchShape shape;
  shape.threads = kMapThreads;
  shape.blocks_x = BlocksFor(rows.rows, kMapThreads);
  return launch(queue, &PadRowsKernel<Word>, shape, rows, static_cast<const Word*>(operands.inputs[0]),
                static_cast<Word*>(operands.outputs[0]));
}

/// The bits of `value` as an element of type `dtype`: rounded, or an integer that the type holds.
std::uint64_t BitsOf(float value, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return std::bit_cast<std::uint32_t>(value);
    case DType::kF16:
      return Half::FromFloat(value);
    case DType::kBF16:
      return BFloat16::FromFloat(value);
    default:
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePad(const KernelSpec& spec, const KernelContext&) {
  const DType in = spec.inputs[0].dtype, out = spec.outputs[0].dtype;
  if (!CanMove(in, out)) return UnsupportedTypes(spec);
  const std::vector<PaddedAxis> merged = MergedAxes(spec);
  int unit = 1;
  const absl::StatusOr<PadAxes> axes = PlanPad(merged, unit);
  if (!axes.ok()) return axes.status();
  const std::uint64_t value = BitsOf(FloatAttribute(spec, "value"), out);
  const std::size_t bytes = ElementSize(in);
  if (const std::optional<PadRows> rows = RowsOf(merged);
      rows && in == out && (bytes == 2 || bytes == 4) && unit == 1 && value == 0) {
    return MakeKernel([rows = *rows, bytes](const KernelOperands& operands, LaunchQueue& queue) {
      return bytes == 2 ? EnqueuePadRows<std::uint16_t>(queue, rows, operands)
                        : EnqueuePadRows<std::uint32_t>(queue, rows, operands);
    });
  }
  return MakeKernel(
      [axes = *axes, mover = Mover::Of(in, out, unit), value, bytes = ElementSize(out),
       units = spec.outputs[0].num_elements() / unit](const KernelOperands& operands, LaunchQueue& queue) {
        Mover bound = mover;
        bound.from.data = operands.inputs[0];
        bound.to.data = operands.outputs[0];
        LaunchShape shape;
        shape.threads = kMapThreads;
        shape.blocks_x = BlocksFor(units, kMapThreads);
        return VisitWord(bytes, [&](auto word) {
          using Word = decltype(word);
          return launch(queue, &PadKernel<Word>, shape, axes, bound, static_cast<Word>(value), units);
        });
      });
}

}  // namespace

void RegisterDataMovement(Registry& registry) {
  registry.Add("reshape", CreateReshape, {{0, 0}});
  registry.Add("transpose", CreateTranspose);
  registry.Add("broadcast_to", CreateBroadcastTo);
  registry.Add("concat", CreateConcat);
  registry.Add("split", CreateSplit);
  registry.Add("slice", CreateSlice);
  registry.Add("pad", CreatePad);
}

}  // namespace mpc::cuda
