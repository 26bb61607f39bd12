// softmax, log_softmax and their gradients along any axis, any floating storage type, f32 inside. The last axis runs
// row by row; another axis runs over blocks of neighbouring columns at once.
#include "kernels/scalar/softmax.h"

#include <limits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/softmax_rows.h"

namespace mpc::cpu {
namespace {

// A tensor as [outer, extent, inner] around the softmax axis.
struct AxisView {
  std::int64_t outer = 1, extent = 1, inner = 1;
  std::int64_t count() const { return outer * extent * inner; }

  static absl::StatusOr<AxisView> Create(const KernelSpec& spec) {
    const Shape& shape = spec.inputs[0].shape;
    const std::int64_t rank = static_cast<std::int64_t>(shape.size());
    std::int64_t axis = spec.attributes.GetInt("axis", -1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return UnsupportedTypes(spec);
    AxisView view;
    view.extent = shape[static_cast<std::size_t>(axis)];
    view.inner = RowMajorStrides(shape)[static_cast<std::size_t>(axis)];
    view.outer = NumElements(shape) / (view.extent * view.inner);
    return view;
  }
};

template <typename Op>
void ForwardRow(Source x, Sink y, std::int64_t base, std::int64_t extent) {
  const float largest = RowMaximum(x, base, extent);
  const float normaliser = Op::Normaliser(RowSumExp(x, base, extent, largest));
  ForEachRowBlock(x, base, extent, [&](std::int64_t start, std::int64_t size, const float* values) {
    BlockBuffer y_buffer;
    float* target = y.Target(base + start, y_buffer.values);
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) target[i] = Op::Result(values[i] - largest, normaliser);
    y.Commit(base + start, size, target);
  });
}

// `size` neighbouring columns; element k of the axis is `inner` further on.
template <typename Op>
void ForwardColumns(Source x, Sink y, std::int64_t base, const AxisView& view, std::int64_t size) {
  BlockBuffer largest, sum{}, x_buffer, y_buffer;
  std::fill_n(largest.values, size, -std::numeric_limits<float>::infinity());
  for (std::int64_t k = 0; k < view.extent; ++k) {
    const float* values = x.Load(base + k * view.inner, size, x_buffer.values);
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) {
      largest.values[i] = values[i] > largest.values[i] ? values[i] : largest.values[i];
    }
  }
  for (std::int64_t k = 0; k < view.extent; ++k) {
    const float* values = x.Load(base + k * view.inner, size, x_buffer.values);
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) sum.values[i] += scalar::Exp(values[i] - largest.values[i]);
  }
#pragma omp simd
  for (std::int64_t i = 0; i < size; ++i) sum.values[i] = Op::Normaliser(sum.values[i]);
  for (std::int64_t k = 0; k < view.extent; ++k) {
    const std::int64_t offset = base + k * view.inner;
    const float* values = x.Load(offset, size, x_buffer.values);
    float* target = y.Target(offset, y_buffer.values);
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) {
      target[i] = Op::Result(values[i] - largest.values[i], sum.values[i]);
    }
    y.Commit(offset, size, target);
  }
}

// Calls row(base) for every row of the last axis, or columns(base, size) for every block of columns of another.
template <typename Row, typename Columns>
void ForEachLine(const AxisView& view, const Row& row, const Columns& columns) {
  if (view.inner == 1) {
    ParallelFor(view.outer, view.count(), [&](std::int64_t i) { row(i * view.extent); });
    return;
  }
  const std::int64_t blocks = (view.inner + kBlock - 1) / kBlock;
  ParallelFor(view.outer * blocks, view.count(), [&](std::int64_t task) {
    const std::int64_t column = task % blocks * kBlock;
    columns(task / blocks * view.extent * view.inner + column, std::min(kBlock, view.inner - column));
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateForward(const KernelSpec& spec) {
  absl::StatusOr<AxisView> view = AxisView::Create(spec);
  if (!view.ok()) return view.status();
  return MakeKernel(
      [view = *view, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype](const KernelOperands& operands) {
        const Source x{in, operands.inputs[0]};
        const Sink y{out, operands.outputs[0]};
        ForEachLine(
            view, [&](std::int64_t base) { ForwardRow<Op>(x, y, base, view.extent); },
            [&](std::int64_t base, std::int64_t size) { ForwardColumns<Op>(x, y, base, view, size); });
      });
}

template <typename Op>
void GradRow(Source dy, Source y, Sink dx, std::int64_t base, std::int64_t extent) {
  float sum = 0;
  BlockBuffer y_buffer, dx_buffer;
  ForEachRowBlock(dy, base, extent, [&](std::int64_t start, std::int64_t size, const float* dy_values) {
    const float* y_values = y.Load(base + start, size, y_buffer.values);
    float block_sum = 0;
#pragma omp simd reduction(+ : block_sum)
    for (std::int64_t i = 0; i < size; ++i) block_sum += Op::Term(dy_values[i], y_values[i]);
    sum += block_sum;
  });
  ForEachRowBlock(dy, base, extent, [&](std::int64_t start, std::int64_t size, const float* dy_values) {
    const float* y_values = y.Load(base + start, size, y_buffer.values);
    float* target = dx.Target(base + start, dx_buffer.values);
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) target[i] = Op::Result(dy_values[i], y_values[i], sum);
    dx.Commit(base + start, size, target);
  });
}

template <typename Op>
void GradColumns(Source dy, Source y, Sink dx, std::int64_t base, const AxisView& view, std::int64_t size) {
  BlockBuffer sum{}, dy_buffer, y_buffer, dx_buffer;
  for (std::int64_t k = 0; k < view.extent; ++k) {
    const float* dy_values = dy.Load(base + k * view.inner, size, dy_buffer.values);
    const float* y_values = y.Load(base + k * view.inner, size, y_buffer.values);
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) sum.values[i] += Op::Term(dy_values[i], y_values[i]);
  }
  for (std::int64_t k = 0; k < view.extent; ++k) {
    const std::int64_t offset = base + k * view.inner;
    const float* dy_values = dy.Load(offset, size, dy_buffer.values);
    const float* y_values = y.Load(offset, size, y_buffer.values);
    float* target = dx.Target(offset, dx_buffer.values);
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) target[i] = Op::Result(dy_values[i], y_values[i], sum.values[i]);
    dx.Commit(offset, size, target);
  }
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGrad(const KernelSpec& spec) {
  absl::StatusOr<AxisView> view = AxisView::Create(spec);
  if (!view.ok()) return view.status();
  return MakeKernel([view = *view, dy_type = spec.inputs[0].dtype, y_type = spec.inputs[1].dtype,
                     out = spec.outputs[0].dtype](const KernelOperands& operands) {
    const Source dy{dy_type, operands.inputs[0]};
    const Source y{y_type, operands.inputs[1]};
    const Sink dx{out, operands.outputs[0]};
    ForEachLine(
        view, [&](std::int64_t base) { GradRow<Op>(dy, y, dx, base, view.extent); },
        [&](std::int64_t base, std::int64_t size) { GradColumns<Op>(dy, y, dx, base, view, size); });
  });
}

}  // namespace

void RegisterSoftmax(Registry& registry) {
  using namespace scalar;
  registry.Add("softmax", CreateForward<SoftmaxOp>, {{0, 0}});
  registry.Add("log_softmax", CreateForward<LogSoftmaxOp>, {{0, 0}});
  registry.Add("softmax_grad", CreateGrad<SoftmaxGradOp>, {{0, 0}, {0, 1}});
  registry.Add("log_softmax_grad", CreateGrad<LogSoftmaxGradOp>, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cpu
