// reduce_sum, reduce_mean, reduce_max, reduce_min and their gradient, reduce_prod and its gradient, argmax, over any
// axes and any floating storage type. They reduce rows where the innermost axis is reduced, and columns where it is
// kept.
#include "kernels/cuda/column_reduce.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/row_reduce.h"
#include "kernels/known_attributes.h"
#include "kernels/reduce_plan.h"

namespace mpc::cuda {
namespace {

using scalar::ArgmaxOp;
using scalar::FactorsOp;
using scalar::MaximumOrNanOp;
using scalar::SumOp;

/// Kept and reduced axes alternate after merging, so that there are at most four of a kind. Loops over a constant
/// number of axes keep them in registers.
constexpr int kAxes = AxisList::kMaxRank / 2;

/// AxisList::Offset on the device.
__device__ __forceinline__ std::int64_t OffsetOf(const AxisList& axes, std::int64_t index) {
  std::int64_t offset = 0;
  MPC_UNROLL for (int axis = kAxes - 1; axis > 0; --axis) {
    if (axis >= axes.rank) continue;
    offset += index % axes.extents[axis] * axes.strides[axis];
    index /= axes.extents[axis];
  }
  return axes.rank > 0 ? offset + index * axes.strides[0] : offset;
}

// The value that a reduction takes from an element.
template <typename Op>
struct ElementTerm {
  __device__ float operator()(float x, std::int64_t) const { return x; }
};
template <>
struct ElementTerm<ArgmaxOp> {
  __device__ ArgmaxOp::Value operator()(float x, std::int64_t index) const {
    return {x, static_cast<std::int32_t>(index)};
  }
};

template <>
struct ElementTerm<FactorsOp> {
  __device__ FactorsOp::Value operator()(float x, std::int64_t) const { return FactorsOp::Of(x); }
};

/// The elements of a ReducePlan, for RowReduce and ColumnReduce.
template <typename Op>
struct ReduceTerms {
  Source x;
  AxisList kept, reduced;

  template <int kWidth>
  struct Row {
    const ReduceTerms& terms;
    std::int64_t base;

    __device__ __forceinline__ void Add(std::int64_t segment, std::int64_t index,
                                        typename Op::Value (&values)[1]) const {
      float x[kWidth];
      LoadElements(terms.x, base + OffsetOf(terms.reduced, segment) + index, x);
      for (int i = 0; i < kWidth; ++i) values[0] = Op::Combine(values[0], ElementTerm<Op>()(x[i], index + i));
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Row<kWidth> RowAt(std::int64_t result) const {
    return {*this, OffsetOf(kept, result)};
  }

  template <int kWidth>
  struct Columns {
    using Loaded = StoredElements<kWidth>;
    const ReduceTerms& terms;
    std::int64_t base;

    __device__ __forceinline__ Loaded Load(std::int64_t row) const {
      return LoadStored<kWidth>(terms.x, base + OffsetOf(terms.reduced, row));
    }
    __device__ __forceinline__ void Add(const Loaded& loaded, std::int64_t row,
                                        typename Op::Value (&values)[1][kWidth]) const {
      float x[kWidth];
      WidenStored(terms.x, loaded, x);
      for (int i = 0; i < kWidth; ++i) values[0][i] = Op::Combine(values[0][i], ElementTerm<Op>()(x[i], row));
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Columns<kWidth> ColumnsAt(std::int64_t matrix, std::int64_t column) const {
    return {*this, OffsetOf(kept, matrix) + column};
  }
};

struct StoreQuotient {
  Sink y;
  float divisor;
  __device__ void operator()(std::int64_t result, const float (&values)[1]) const {
    y.Store(result, values[0] / divisor);
  }
};

struct StoreIndex {
  std::int32_t* y;
  __device__ void operator()(std::int64_t result, const ArgmaxOp::Value (&values)[1]) const {
    y[result] = values[0].index;
  }
};

/// A ReducePlan with how it is shared out.
template <typename Op>
struct Reduction {
  ReducePlan axes;
  RowPlan rows;
  ColumnPlan columns;

  explicit Reduction(const ReducePlan& plan) : axes(plan) {
    if (plan.inner_reduced) {
      rows = RowPlan::For(plan.kept.count(), plan.reduced.count(), plan.inner);
    } else {
      columns = ColumnPlan::For(plan.kept.count(), plan.reduced.count(), plan.inner);
    }
  }
  std::size_t workspace_bytes() const {
    using Value = typename Op::Value;
    return axes.inner_reduced ? rows.workspace_bytes<Value>(1) : columns.workspace_bytes<Value>(1);
  }
  template <typename Terms, typename Finish>
  absl::Status Run(LaunchQueue& queue, const Terms& terms, const Finish& finish, void* workspace) const {
    return axes.inner_reduced ? RowReduce<Op, 1>(queue, rows, terms, finish, workspace)
                              : ColumnReduce<Op, 1>(queue, columns, terms, finish, workspace);
  }
};

template <typename Op, bool kMean>
absl::StatusOr<std::unique_ptr<Kernel>> CreateReduce(const KernelSpec& spec, const KernelContext&) {
  absl::StatusOr<ReducePlan> plan = PlanReduce(spec, 0);
  if (!plan.ok()) return plan.status();
  if (!kMean) plan->divisor = 1;
  const Reduction<Op> reduction(*plan);
  const auto run = [reduction](const KernelOperands& operands, LaunchQueue& queue) {
    const ReducePlan& plan = reduction.axes;
    const ReduceTerms<Op> terms{{operands.inputs[0], plan.in}, plan.kept, plan.reduced};
    return reduction.Run(queue, terms, StoreQuotient{{operands.outputs[0], plan.out}, plan.divisor},
                         operands.workspace);
  };
  return MakeKernel(run, reduction.workspace_bytes());
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateArgmax(const KernelSpec& spec, const KernelContext&) {
  const std::int64_t rank = static_cast<std::int64_t>(spec.inputs[0].shape.size());
  std::int64_t axis = spec.attributes.Get(attribute::kLastAxis);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || spec.outputs[0].dtype != DType::kI32) return UnsupportedTypes(spec);
  KernelSpec along = spec;
  along.attributes = {{"axes", std::vector<std::int64_t>{axis}}};
  const absl::StatusOr<ReducePlan> plan = PlanReduce(along, 0);
  if (!plan.ok()) return plan.status();
  const Reduction<ArgmaxOp> reduction(*plan);
  const auto run = [reduction](const KernelOperands& operands, LaunchQueue& queue) {
    const ReducePlan& plan = reduction.axes;
    const ReduceTerms<ArgmaxOp> terms{{operands.inputs[0], plan.in}, plan.kept, plan.reduced};
    return reduction.Run(queue, terms, StoreIndex{static_cast<std::int32_t*>(operands.outputs[0])}, operands.workspace);
  };
  return MakeKernel(run, reduction.workspace_bytes());
}

/// Counts the elements that equal the maximum of their result; none equals a NaN.
struct TieTerms {
  ReduceTerms<MaximumOrNanOp> elements;
  Source y;

  template <int kWidth>
  struct Row {
    const TieTerms& terms;
    std::int64_t base;
    float largest;

    __device__ __forceinline__ void Add(std::int64_t segment, std::int64_t index, std::int64_t (&values)[1]) const {
      float x[kWidth];
      LoadElements(terms.elements.x, base + OffsetOf(terms.elements.reduced, segment) + index, x);
      for (int i = 0; i < kWidth; ++i) values[0] += x[i] == largest ? 1 : 0;
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Row<kWidth> RowAt(std::int64_t result) const {
    return {*this, OffsetOf(elements.kept, result), y.Load(result)};
  }

  template <int kWidth>
  struct Columns {
    using Loaded = StoredElements<kWidth>;
    const TieTerms& terms;
    std::int64_t base;
    float largest[kWidth];

    __device__ __forceinline__ Loaded Load(std::int64_t row) const {
      return LoadStored<kWidth>(terms.elements.x, base + OffsetOf(terms.elements.reduced, row));
    }
    __device__ __forceinline__ void Add(const Loaded& loaded, std::int64_t, std::int64_t (&values)[1][kWidth]) const {
      float x[kWidth];
      WidenStored(terms.elements.x, loaded, x);
      for (int i = 0; i < kWidth; ++i) values[0][i] += x[i] == largest[i] ? 1 : 0;
    }
  };
  std::int64_t inner;
  template <int kWidth>
  __device__ __forceinline__ Columns<kWidth> ColumnsAt(std::int64_t matrix, std::int64_t column) const {
    Columns<kWidth> columns{*this, OffsetOf(elements.kept, matrix) + column, {}};
    LoadElements(y, matrix * inner + column, columns.largest);
    return columns;
  }
};

struct StoreShare {
  Source dy;
  float* share;
  __device__ void operator()(std::int64_t result, const std::int64_t (&ties)[1]) const {
    share[result] = dy.Load(result) / static_cast<float>(ties[0]);
  }
};

/// The result that element `i` of the operand belongs to.
__device__ __forceinline__ std::int64_t ResultOf(std::int64_t i, const AxisList& kept, std::int64_t kept_inner) {
  std::int64_t result = i % kept_inner;
  std::int64_t stride = kept_inner;
  MPC_UNROLL for (int axis = kAxes - 1; axis >= 0; --axis) {
    if (axis >= kept.rank) continue;
    result += i / kept.strides[axis] % kept.extents[axis] * stride;
    stride *= kept.extents[axis];
  }
  return result;
}

/// dx[i] = share of i's result where x[i] is its maximum, else 0.
__global__ void __launch_bounds__(kMapThreads)
    MaxGradientKernel(Source x, Source y, const float* share, Sink dx, AxisList kept, std::int64_t kept_inner,
                      std::int64_t count) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    const std::int64_t result = ResultOf(i, kept, kept_inner);
    dx.Store(i, x.Load(i) == y.Load(result) ? share[result] : 0.0f);
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateReduceMaxGrad(const KernelSpec& spec, const KernelContext&) {
  const absl::StatusOr<ReducePlan> plan = PlanReduce(spec, 1);
  if (!plan.ok()) return plan.status();
  const Reduction<SumOp<std::int64_t>> reduction(*plan);
  const std::int64_t results = spec.inputs[0].num_elements();
  // Partial counts come first, since they are wider.
  const std::size_t partial_bytes = reduction.workspace_bytes();
  const auto run = [reduction, partial_bytes, dy_type = spec.inputs[0].dtype, y_type = spec.inputs[2].dtype,
                    dx_type = spec.outputs[0].dtype,
                    count = spec.inputs[1].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    const ReducePlan& plan = reduction.axes;
    const Source x{operands.inputs[1], plan.in};
    const Source y{operands.inputs[2], y_type};
    auto* share = reinterpret_cast<float*>(static_cast<unsigned char*>(operands.workspace) + partial_bytes);
    const TieTerms terms{{x, plan.kept, plan.reduced}, y, plan.inner};
    const absl::Status status =
        reduction.Run(queue, terms, StoreShare{{operands.inputs[0], dy_type}, share}, operands.workspace);
    if (!status.ok()) return status;
    LaunchShape shape;
    shape.threads = kMapThreads;
    shape.blocks_x = BlocksFor(count, kMapThreads);
    return launch(queue, &MaxGradientKernel, shape, x, y, share, Sink{operands.outputs[0], dx_type}, plan.kept,
                  plan.inner_reduced ? 1 : plan.inner, count);
  };
  return MakeKernel(run, partial_bytes + static_cast<std::size_t>(results) * sizeof(float));
}

struct StoreFactors {
  FactorsOp::Value* factors;
  __device__ void operator()(std::int64_t result, const FactorsOp::Value (&values)[1]) const {
    factors[result] = values[0];
  }
};

/// dx[i] = dy of i's result times the product of its other elements.
__global__ void __launch_bounds__(kMapThreads)
    ProductGradientKernel(Source dy, Source x, const FactorsOp::Value* factors, Sink dx, AxisList kept,
                          std::int64_t kept_inner, std::int64_t count) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    const std::int64_t result = ResultOf(i, kept, kept_inner);
    dx.Store(i, dy.Load(result) * FactorsOp::Without(factors[result], x.Load(i)));
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateReduceProdGrad(const KernelSpec& spec, const KernelContext&) {
  const absl::StatusOr<ReducePlan> plan = PlanReduce(spec, 1);
  if (!plan.ok()) return plan.status();
  const Reduction<FactorsOp> reduction(*plan);
  const std::size_t partial_bytes = reduction.workspace_bytes();
  const auto run = [reduction, partial_bytes, dy_type = spec.inputs[0].dtype, dx_type = spec.outputs[0].dtype,
                    count = spec.inputs[1].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    const ReducePlan& plan = reduction.axes;
    const Source x{operands.inputs[1], plan.in};
    auto* factors =
        reinterpret_cast<FactorsOp::Value*>(static_cast<unsigned char*>(operands.workspace) + partial_bytes);
    const ReduceTerms<FactorsOp> terms{x, plan.kept, plan.reduced};
    const absl::Status status = reduction.Run(queue, terms, StoreFactors{factors}, operands.workspace);
    if (!status.ok()) return status;
    LaunchShape shape;
    shape.threads = kMapThreads;
    shape.blocks_x = BlocksFor(count, kMapThreads);
    return launch(queue, &ProductGradientKernel, shape, Source{operands.inputs[0], dy_type}, x, factors,
                  Sink{operands.outputs[0], dx_type}, plan.kept, plan.inner_reduced ? 1 : plan.inner, count);
  };
  return MakeKernel(run,
                    partial_bytes + static_cast<std::size_t>(spec.inputs[0].num_elements()) * sizeof(FactorsOp::Value));
}

}  // namespace

void RegisterReduce(Registry& registry) {
  registry.Add("reduce_sum", CreateReduce<SumOp<float>, false>);
  registry.Add("reduce_mean", CreateReduce<SumOp<float>, true>);
  registry.Add("reduce_max", CreateReduce<MaximumOrNanOp, false>);
  registry.Add("reduce_max_grad", CreateReduceMaxGrad);
  registry.Add("reduce_min", CreateReduce<scalar::MinimumOrNanOp, false>);
  registry.Add("reduce_prod", CreateReduce<scalar::ProductOp, false>);
  registry.Add("reduce_prod_grad", CreateReduceProdGrad);
  registry.Add("argmax", CreateArgmax);
}

}  // namespace mpc::cuda
