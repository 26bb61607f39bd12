// softmax, log_softmax and their gradients along any axis, any floating storage type, f32 inside. The last axis goes
// row by row; along another axis a thread takes a line, next to its neighbours' lines.
#include "kernels/cuda/registry.h"
#include "kernels/cuda/row_pass.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/softmax.h"

namespace mpc::cuda {
namespace {

using scalar::MaxNumOp;
using scalar::SumOp;

constexpr int kLineThreads = 128;

// A tensor as [outer, extent, inner] around the softmax axis.
struct AxisView {
  std::int64_t outer = 1, extent = 1, inner = 1;

  static absl::StatusOr<AxisView> Create(const KernelSpec& spec) {
    const Shape& shape = spec.inputs[0].shape;
    const std::int64_t rank = static_cast<std::int64_t>(shape.size());
    std::int64_t axis = spec.attributes.Get(attribute::kLastAxis);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return UnsupportedTypes(spec);
    AxisView view;
    for (std::int64_t i = 0; i < rank; ++i) {
      (i < axis ? view.outer : i == axis ? view.extent : view.inner) *= shape[static_cast<std::size_t>(i)];
    }
    return view;
  }
};

template <typename Team, typename Op>
__global__ void __launch_bounds__(Team::kBlockThreads, Team::kBlocksAtOnce)
    SoftmaxRowKernel(Source x, Sink y, std::int64_t rows, std::int64_t width) {
  AwaitEarlierLaunches();
  for (std::int64_t index = Team::FirstRow(); index < rows; index += Team::RowStep()) {
    Row<Team, 1> row({x}, index * width, width);
    const ExpSum exp = ExpSum::Create(row);
    const float largest = exp.largest;
    const float normaliser = Op::Normaliser(exp.sum);
    row.Write(y, [&](const auto&, const float(&x)[1][kVector], float(&y)[kVector]) {
      for (int i = 0; i < kVector; ++i) y[i] = Op::Result(x[0][i] - largest, normaliser);
    });
  }
}

template <typename Team, typename Op>
__global__ void __launch_bounds__(Team::kBlockThreads, Team::kBlocksAtOnce)
    SoftmaxGradRowKernel(Source dy, Source y, Sink dx, std::int64_t rows, std::int64_t width) {
  AwaitEarlierLaunches();
  for (std::int64_t index = Team::FirstRow(); index < rows; index += Team::RowStep()) {
    Row<Team, 2> row({dy, y}, index * width, width);
    float sum = 0;
    row.ForEach([&](const auto& elements, const float(&x)[2][kVector]) {
      for (int i = 0; i < kVector; ++i) {
        if (i < elements.count) sum += Op::Term(x[0][i], x[1][i]);
      }
    });
    sum = Team::template Reduce<SumOp<float>>(sum);
    row.Write(dx, [&](const auto&, const float(&x)[2][kVector], float(&dx)[kVector]) {
      for (int i = 0; i < kVector; ++i) dx[i] = Op::Result(x[0][i], x[1][i], sum);
    });
  }
}

/// Calls line(base) with the first element of each line of this thread.
template <typename Line>
__device__ __forceinline__ void ForEachLine(const AxisView& view, const Line& line) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kLineThreads;
  std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kLineThreads + threadIdx.x;
  for (; index < view.outer * view.inner; index += threads) {
    line(index / view.inner * view.inner * view.extent + index % view.inner);
  }
}

template <typename Op>
__global__ void __launch_bounds__(kLineThreads) SoftmaxLineKernel(Source x, Sink y, AxisView view) {
  AwaitEarlierLaunches();
  const std::int64_t size = view.extent * view.inner;
  ForEachLine(view, [&](std::int64_t base) {
    float largest = MaxNumOp::Identity();
    for (std::int64_t k = 0; k < size; k += view.inner) largest = MaxNumOp::Combine(largest, x.Load(base + k));
    float sum = 0;
    for (std::int64_t k = 0; k < size; k += view.inner) sum += scalar::Exp(x.Load(base + k) - largest);
    const float normaliser = Op::Normaliser(sum);
    for (std::int64_t k = 0; k < size; k += view.inner) {
      y.Store(base + k, Op::Result(x.Load(base + k) - largest, normaliser));
    }
  });
}

template <typename Op>
__global__ void __launch_bounds__(kLineThreads) SoftmaxGradLineKernel(Source dy, Source y, Sink dx, AxisView view) {
  AwaitEarlierLaunches();
  const std::int64_t size = view.extent * view.inner;
  ForEachLine(view, [&](std::int64_t base) {
    float sum = 0;
    for (std::int64_t k = 0; k < size; k += view.inner) sum += Op::Term(dy.Load(base + k), y.Load(base + k));
    for (std::int64_t k = 0; k < size; k += view.inner) {
      dx.Store(base + k, Op::Result(dy.Load(base + k), y.Load(base + k), sum));
    }
  });
}

LaunchShape ShapeForLines(const AxisView& view) {
  LaunchShape shape;
  shape.threads = kLineThreads;
  shape.blocks_x = BlocksFor(view.outer * view.inner, kLineThreads);
  return shape;
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateForward(const KernelSpec& spec, const KernelContext&) {
  const absl::StatusOr<AxisView> view = AxisView::Create(spec);
  if (!view.ok()) return view.status();
  return MakeKernel([view = *view, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype](
                        const KernelOperands& operands, LaunchQueue& queue) {
    const Source x{operands.inputs[0], in};
    const Sink y{operands.outputs[0], out};
    if (view.inner != 1) return launch(queue, &SoftmaxLineKernel<Op>, ShapeForLines(view), x, y, view);
    return WithRowTeam(view.extent, [&](auto team) {
      using Team = decltype(team);
      return launch(queue, &SoftmaxRowKernel<Team, Op>, Team::ShapeFor(view.outer), x, y, view.outer, view.extent);
    });
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGrad(const KernelSpec& spec, const KernelContext&) {
  const absl::StatusOr<AxisView> view = AxisView::Create(spec);
  if (!view.ok()) return view.status();
  return MakeKernel([view = *view, dy_type = spec.inputs[0].dtype, y_type = spec.inputs[1].dtype,
                     out = spec.outputs[0].dtype](const KernelOperands& operands, LaunchQueue& queue) {
    const Source dy{operands.inputs[0], dy_type};
    const Source y{operands.inputs[1], y_type};
    const Sink dx{operands.outputs[0], out};
    if (view.inner != 1) return launch(queue, &SoftmaxGradLineKernel<Op>, ShapeForLines(view), dy, y, dx, view);
    return WithRowTeam(view.extent, [&](auto team) {
      using Team = decltype(team);
      return launch(queue, &SoftmaxGradRowKernel<Team, Op>, Team::ShapeFor(view.outer), dy, y, dx, view.outer,
                    view.extent);
    });
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

}  // namespace mpc::cuda
