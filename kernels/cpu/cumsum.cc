// cumsum along any axis, for any floating storage type. A task takes a line along the innermost axis, or a block of
// lines that lie beside each other. Each sum is that of one line from its start on, one element after the other.
#include <algorithm>

#include "kernels/axis_lines.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

struct RunningSums {
  AxisLines lines;
  bool exclusive, reverse;
  Source x;
  Sink y;

  /// Lines whose elements are neighbours.
  void Rows() const {
    const std::int64_t blocks = (lines.extent + kBlock - 1) / kBlock;
    ParallelFor(lines.outer, lines.outer * lines.extent, [&](std::int64_t line) {
      BlockBuffer x_buffer, y_buffer;
      float sum = 0;
      for (std::int64_t block = 0; block < blocks; ++block) {
        const std::int64_t start = (reverse ? blocks - 1 - block : block) * kBlock;
        const std::int64_t size = std::min(kBlock, lines.extent - start);
        const std::int64_t offset = line * lines.extent + start;
        const float* values = x.Load(offset, size, x_buffer.values);
        float* target = y.Target(offset, y_buffer.values);
        for (std::int64_t step = 0; step < size; ++step) {
          const std::int64_t i = reverse ? size - 1 - step : step;
          const float before = sum;
          sum += values[i];
          target[i] = exclusive ? before : sum;
        }
        y.Commit(offset, size, target);
      }
    });
  }

  /// Lines beside each other.
  void Columns() const {
    const std::int64_t blocks = (lines.inner + kBlock - 1) / kBlock;
    ParallelFor(lines.outer * blocks, lines.count() * lines.extent, [&](std::int64_t task) {
      const std::int64_t column = task % blocks * kBlock;
      const std::int64_t size = std::min(kBlock, lines.inner - column);
      BlockBuffer sums{}, x_buffer, y_buffer;
      for (std::int64_t step = 0; step < lines.extent; ++step) {
        const std::int64_t index = reverse ? lines.extent - 1 - step : step;
        const std::int64_t offset = (task / blocks * lines.extent + index) * lines.inner + column;
        const float* values = x.Load(offset, size, x_buffer.values);
        float* target = y.Target(offset, y_buffer.values);
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) {
          const float before = sums.values[i];
          sums.values[i] = before + values[i];
          target[i] = exclusive ? before : sums.values[i];
        }
        y.Commit(offset, size, target);
      }
    });
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateCumsum(const KernelSpec& spec) {
  return MakeKernel([lines = AxisLines::Of(spec.attributes, spec.inputs[0].shape),
                     exclusive = spec.attributes.GetBool("exclusive"), reverse = spec.attributes.GetBool("reverse"),
                     in = spec.inputs[0].dtype, out = spec.outputs[0].dtype](const KernelOperands& operands) {
    const RunningSums sums{lines, exclusive, reverse, {in, operands.inputs[0]}, {out, operands.outputs[0]}};
    lines.inner == 1 ? sums.Rows() : sums.Columns();
  });
}

}  // namespace

void RegisterCumsum(Registry& registry) { registry.Add("cumsum", CreateCumsum, {{0, 0}}); }

}  // namespace mpc::cpu
