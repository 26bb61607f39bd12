// reshape, transpose and broadcast_to: bits move, nothing is computed. Transposes of any
// rank and element size are merged into as few axes as possible. A swap of two (merged) axes runs in tiles; it covers
// matrices and NCHW <-> NHWC. Other transposes run row by row.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/broadcast.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/strided_view.h"
#include "kernels/words.h"

namespace mpc::cpu {
namespace {

// A plain copy in parallel blocks.
void Copy(const void* source, void* target, std::int64_t bytes) {
  if (source == target) return;
  constexpr std::int64_t kBytes = 64 * 1024;
  ParallelFor((bytes + kBytes - 1) / kBytes, bytes / 4, [&](std::int64_t i) {
    const std::int64_t begin = i * kBytes;
    std::memcpy(static_cast<char*>(target) + begin, static_cast<const char*>(source) + begin,
                static_cast<std::size_t>(std::min(kBytes, bytes - begin)));
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateReshape(const KernelSpec& spec) {
  if (spec.inputs[0].dtype != spec.outputs[0].dtype) return UnsupportedTypes(spec);
  return MakeKernel([bytes = static_cast<std::int64_t>(spec.outputs[0].bytes())](const KernelOperands& operands) {
    Copy(operands.inputs[0], operands.outputs[0], bytes);
  });
}

// Bits of `Word` size are repeated, never interpreted.
template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> CreateBroadcastOfWords(const BroadcastMap& map, std::int64_t count) {
  return MakeKernel([map, count](const KernelOperands& operands) {
    const auto* x = static_cast<const Word*>(operands.inputs[0]);
    auto* y = static_cast<Word*>(operands.outputs[0]);
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      const Word* words = LoadWords(map, x, offset, size, y + offset);
      if (words != y + offset) std::copy_n(words, size, y + offset);
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateBroadcastTo(const KernelSpec& spec) {
  const Shape& shape = spec.outputs[0].shape;
  absl::StatusOr<BroadcastMap> map = BroadcastMap::Create(spec.inputs[0].shape, shape);
  if (!map.ok()) return map.status();
  if (const DType dtype = spec.outputs[0].dtype; !IsFloating(dtype)) {
    if (spec.inputs[0].dtype != dtype) return UnsupportedTypes(spec);
    return VisitWord(ElementSize(dtype),
                     [&](auto word) { return CreateBroadcastOfWords<decltype(word)>(*map, NumElements(shape)); });
  }
  return MakeKernel([map = *map, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     count = NumElements(shape)](const KernelOperands& operands) {
    const BroadcastSource x{{in, operands.inputs[0]}, &map};
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer buffer;
      StoreFloats(out, x.Load(offset, size, buffer.values), operands.outputs[0], offset, size);
    });
  });
}

// [batch, rows, columns] -> [batch, columns, rows] in tiles that stay in the first-level cache.
template <typename Word>
void SwapAxes(const Word* x, Word* y, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kTile = 32;
  const std::int64_t row_tiles = (rows + kTile - 1) / kTile;
  ParallelFor(batch * row_tiles, batch * rows * columns, [&](std::int64_t task) {
    const std::int64_t plane = task / row_tiles * rows * columns;
    const std::int64_t row_begin = task % row_tiles * kTile;
    const std::int64_t row_end = std::min(rows, row_begin + kTile);
    for (std::int64_t column_begin = 0; column_begin < columns; column_begin += kTile) {
      const std::int64_t column_end = std::min(columns, column_begin + kTile);
      for (std::int64_t column = column_begin; column < column_end; ++column) {
        const Word* from = x + plane + column;
        Word* to = y + plane + column * rows;
        for (std::int64_t row = row_begin; row < row_end; ++row) to[row] = from[row * columns];
      }
    }
  });
}

// Any permutation, one innermost row of the result at a time.
template <typename Word>
void Gather(const StridedView& plan, const Word* x, Word* y) {
  const int inner = plan.rank - 1;
  const std::int64_t length = plan.extents[inner];
  const std::int64_t stride = plan.strides[inner];
  const std::int64_t rows = plan.count / length;
  constexpr std::int64_t kRows = 64;
  ParallelFor((rows + kRows - 1) / kRows, plan.count, [&](std::int64_t task) {
    for (std::int64_t row = task * kRows; row < std::min(rows, (task + 1) * kRows); ++row) {
      const Word* from = x;
      std::int64_t rest = row;
      for (int axis = inner - 1; axis >= 0; --axis) {
        from += rest % plan.extents[axis] * plan.strides[axis];
        rest /= plan.extents[axis];
      }
      Word* to = y + row * length;
      if (stride == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(length) * sizeof(Word));
      } else {
        for (std::int64_t i = 0; i < length; ++i) to[i] = from[i * stride];
      }
    }
  });
}

template <typename Word>
absl::StatusOr<std::unique_ptr<Kernel>> CreateTransposeOf(const StridedView& plan) {
  return MakeKernel([plan](const KernelOperands& operands) {
    const Word* x = static_cast<const Word*>(operands.inputs[0]);
    Word* y = static_cast<Word*>(operands.outputs[0]);
    const auto& [rank, extents, strides, count] = plan;
    if (rank <= 1) {
      Copy(x, y, count * static_cast<std::int64_t>(sizeof(Word)));
    } else if (rank == 2) {
      SwapAxes(x, y, 1, extents[1], extents[0]);
    } else if (rank == 3 && strides[1] == 1 && strides[0] == extents[1] * extents[2]) {
      SwapAxes(x, y, extents[0], extents[2], extents[1]);
    } else {
      Gather(plan, x, y);
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateTranspose(const KernelSpec& spec) {
  if (spec.inputs[0].dtype != spec.outputs[0].dtype) return UnsupportedTypes(spec);
  absl::StatusOr<StridedView> plan = TransposeView(spec.inputs[0].shape, spec.attributes.GetInts("permutation"));
  if (!plan.ok()) return plan.status();
  return VisitWord(ElementSize(spec.outputs[0].dtype),
                   [&](auto word) { return CreateTransposeOf<decltype(word)>(*plan); });
}

}  // namespace

void RegisterDataMovement(Registry& registry) {
  registry.Add("reshape", CreateReshape, {{0, 0}});
  registry.Add("transpose", CreateTranspose);
  registry.Add("broadcast_to", CreateBroadcastTo);
}

}  // namespace mpc::cpu
