// gather (rows of a table by index), gather_grad, scatter_add and one_hot. Indices are i32 or i64, a table of any type,
// everything else of any floating storage type. What adds rows sorts the indices first, so that a row is summed by one
// task, in the order of the indices, and rounded once.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/integers.h"
#include "kernels/cpu/move_elements.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

// Rows of one task: as many as make a least number of elements.
std::int64_t RowsPerTask(std::int64_t width) {
  constexpr std::int64_t kElements = 16 * 1024;
  return std::max<std::int64_t>(1, kElements / width);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGather(const KernelSpec& spec) {
  if (!CanMove(spec.inputs[0].dtype, spec.outputs[0].dtype)) return UnsupportedTypes(spec);
  const std::int64_t rows = spec.inputs[0].shape[0];
  const std::int64_t width = spec.inputs[0].num_elements() / rows;
  return MakeKernel([rows, width, count = spec.inputs[1].num_elements(), table_type = spec.inputs[0].dtype,
                     index_type = spec.inputs[1].dtype,
                     y_type = spec.outputs[0].dtype](const KernelOperands& operands) {
    const std::int64_t group = RowsPerTask(width);
    ParallelFor((count + group - 1) / group, count * width, [&](std::int64_t task) {
      for (std::int64_t i = task * group; i < std::min(count, (task + 1) * group); ++i) {
        const std::int64_t row = IntegerAt(index_type, operands.inputs[1], i);
        if (row >= 0 && row < rows) {
          MoveElements(table_type, operands.inputs[0], row * width, y_type, operands.outputs[0], i * width, width);
          continue;
        }
        if (!IsFloating(y_type)) {
          const auto bytes = static_cast<std::size_t>(width) * ElementSize(y_type);
          std::memset(static_cast<char*>(operands.outputs[0]) + static_cast<std::size_t>(i) * bytes, 0, bytes);
          continue;
        }
        const Sink y{y_type, operands.outputs[0]};
        for (std::int64_t k = 0; k < width; ++k) y.Set(i * width + k, std::numeric_limits<float>::quiet_NaN());
      }
    });
  });
}

// The positions of each row's indices, ascending: those of row v are order[begin[v]] .. order[begin[v + 1] - 1].
struct SortedIndices {
  std::int64_t* begin;
  std::int64_t* order;

  // A counting sort; `begin` has rows + 2 elements.
  void Sort(DType dtype, const void* indices, std::int64_t count, std::int64_t rows) const {
    std::fill_n(begin, rows + 2, 0);
    const auto for_each = [&](const auto& visit) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t row = IntegerAt(dtype, indices, i);
        if (row >= 0 && row < rows) visit(i, row);
      }
    };
    // Counts stand two places on: after the sums, begin[v + 1] is where row v starts, and moves to its end.
    for_each([&](std::int64_t, std::int64_t row) { ++begin[row + 2]; });
    for (std::int64_t row = 2; row < rows + 2; ++row) begin[row] += begin[row - 1];
    for_each([&](std::int64_t i, std::int64_t row) { order[begin[row + 1]++] = i; });
  }
};

// The sums of the rows of operand `added`, by the indices of operand 1. Where operand 0 is another, each sum begins
// with its row.
absl::StatusOr<std::unique_ptr<Kernel>> CreateRowSums(const KernelSpec& spec, std::size_t added) {
  const std::int64_t rows = spec.outputs[0].shape[0];
  const std::int64_t width = spec.outputs[0].num_elements() / rows;
  const std::int64_t count = spec.inputs[1].num_elements();
  const auto run = [rows, width, count, added, types = std::array{spec.inputs[0].dtype, spec.inputs[added].dtype},
                    index_type = spec.inputs[1].dtype, out = spec.outputs[0].dtype](const KernelOperands& operands) {
    const Source first{types[0], operands.inputs[0]};
    const Source updates{types[1], operands.inputs[added]};
    const Sink table{out, operands.outputs[0]};
    auto* begin = static_cast<std::int64_t*>(operands.workspace);
    const SortedIndices sorted{begin, begin + rows + 2};
    sorted.Sort(index_type, operands.inputs[1], count, rows);
    const std::int64_t group = RowsPerTask(width);
    ParallelFor((rows + group - 1) / group, rows * width + count * width, [&](std::int64_t task) {
      for (std::int64_t row = task * group; row < std::min(rows, (task + 1) * group); ++row) {
        for (std::int64_t column = 0; column < width; column += kBlock) {
          const std::int64_t size = std::min(kBlock, width - column);
          BlockBuffer sum{}, buffer;
          if (added != 0) LoadFloats(first.dtype, first.data, row * width + column, size, sum.values);
          for (std::int64_t k = sorted.begin[row]; k < sorted.begin[row + 1]; ++k) {
            const float* values = updates.Load(sorted.order[k] * width + column, size, buffer.values);
#pragma omp simd
            for (std::int64_t i = 0; i < size; ++i) sum.values[i] += values[i];
          }
          StoreFloats(table.dtype, sum.values, table.data, row * width + column, size);
        }
      }
    });
  };
  return MakeKernel(run, static_cast<std::size_t>(rows + 2 + count) * sizeof(std::int64_t));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGatherGrad(const KernelSpec& spec) { return CreateRowSums(spec, 0); }
absl::StatusOr<std::unique_ptr<Kernel>> CreateScatterAdd(const KernelSpec& spec) { return CreateRowSums(spec, 2); }

absl::StatusOr<std::unique_ptr<Kernel>> CreateOneHot(const KernelSpec& spec) {
  const std::int64_t depth = spec.outputs[0].shape.back();
  const float on = spec.attributes.Get(attribute::kOn);
  const float off = FloatAttribute(spec, "off");
  return MakeKernel([depth, on, off, count = spec.inputs[0].num_elements(), index_type = spec.inputs[0].dtype,
                     out = spec.outputs[0].dtype](const KernelOperands& operands) {
    const Sink y{out, operands.outputs[0]};
    FillElements(out, y.data, count * depth, off);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t index = IntegerAt(index_type, operands.inputs[0], i);
      if (index >= 0 && index < depth) y.Set(i * depth + index, on);
    }
  });
}

}  // namespace

void RegisterGather(Registry& registry) {
  registry.Add("gather", CreateGather);
  registry.Add("gather_grad", CreateGatherGrad);
  registry.Add("scatter_add", CreateScatterAdd, {{0, 0}});
  registry.Add("one_hot", CreateOneHot);
}

}  // namespace mpc::cpu
