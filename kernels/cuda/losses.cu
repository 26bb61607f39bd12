// softmax_cross_entropy, mse and bce_with_logits with their gradients. Logits [N, C] row by row, labels dense
// (floating) or sparse (i32, i64); other operands of any shape, element by element. The losses of rows lie in the
// workspace and are added in a launch of their own.
#include <limits>

#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/row_pass.h"
#include "kernels/cuda/row_reduce.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/losses.h"

namespace mpc::cuda {
namespace {

using scalar::SumOp;

struct Labels {
  const void* data;
  DType dtype;

  __host__ __device__ bool dense() const { return IsFloating(dtype); }
  /// The weights of dense labels.
  __device__ Source weights() const { return {data, dtype}; }
  /// The class that a sparse label names.
  __device__ std::int64_t Class(std::int64_t row) const {
    return dtype == DType::kI32 ? static_cast<const std::int32_t*>(data)[row]
                                : static_cast<const std::int64_t*>(data)[row];
  }
};

bool LabelsHaveKernel(const KernelSpec& spec, const TensorSpec& labels) {
  return labels.dtype != DType::kBool && spec.outputs[0].dtype != DType::kBool;
}

// The divisor that turns the sum of element losses into the loss; 0 for `none`.
float DivisorOf(const KernelSpec& spec, std::int64_t count) {
  const LossReduction reduction = spec.attributes.Get(attribute::kReduction);
  if (reduction == LossReduction::kNone) return 0;
  return reduction == LossReduction::kMean ? static_cast<float>(count) : 1.0f;
}

struct StoreLoss {
  float* loss;
  float divisor;
  __device__ void operator()(std::int64_t, const float (&values)[1]) const { *loss = values[0] / divisor; }
};

/// The elements of one row of f32.
struct PlainTerms {
  Source x;

  template <int kWidth>
  struct Row {
    Source x;
    __device__ __forceinline__ void Add(std::int64_t, std::int64_t index, float (&values)[1]) const {
      float terms[kWidth];
      LoadElements(x, index, terms);
      for (int i = 0; i < kWidth; ++i) values[0] += terms[i];
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Row<kWidth> RowAt(std::int64_t) const {
    return {x};
  }
};

/// The rows of logits, and the classes that each begins with.
struct ClassRows {
  std::int64_t rows, columns, classes;
};

ClassRows ClassRowsOf(const KernelSpec& spec, const TensorSpec& logits) {
  return {logits.shape[0], logits.shape[1], spec.attributes.GetInt("classes", logits.shape[1])};
}

/// log_sum_exp and losses, either null, of each row. A label outside the classes gives NaN.
template <typename Team>
__global__ void __launch_bounds__(Team::kBlockThreads, Team::kBlocksAtOnce)
    CrossEntropyKernel(Source logits, Labels labels, float* losses, float* log_sum_exps, ClassRows shape) {
  AwaitEarlierLaunches();
  for (std::int64_t index = Team::FirstRow(); index < shape.rows; index += Team::RowStep()) {
    Row<Team, 1> row({logits}, index * shape.columns, shape.classes);
    // ---- Statistics of the row
    const ExpSum exp = ExpSum::Create(row);
    const float log_sum_exp = exp.largest + scalar::Log(exp.sum);
    // ---- Loss by dense labels
    float loss = 0;
    if (labels.dense()) {
      row.ForEach([&](const auto& elements, const float(&x)[1][kVector]) {
        float weights[kVector];
        elements.Load(labels.weights(), row.base(), weights);
        for (int i = 0; i < kVector; ++i) {
          if (i < elements.count) loss += scalar::CrossEntropyTerm(weights[i], x[0][i], log_sum_exp);
        }
      });
      loss = Team::template Reduce<SumOp<float>>(loss);
    }
    // ---- Results, with the loss by a sparse label
    if (!Team::IsFirstThread()) continue;
    if (log_sum_exps != nullptr) log_sum_exps[index] = log_sum_exp;
    if (losses == nullptr) continue;
    if (!labels.dense()) {
      const std::int64_t label = labels.Class(index);
      loss = label < 0 || label >= shape.classes ? std::numeric_limits<float>::quiet_NaN()
                                                 : log_sum_exp - logits.Load(row.base() + label);
    }
    losses[index] = loss;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateCrossEntropy(const KernelSpec& spec, const KernelContext&) {
  if (!LabelsHaveKernel(spec, spec.inputs[1])) return UnsupportedTypes(spec);
  const ClassRows shape = ClassRowsOf(spec, spec.inputs[0]);
  const float divisor = DivisorOf(spec, shape.rows);
  const RowPlan total = RowPlan::For(1, 1, shape.rows);
  const std::size_t partial_bytes = total.workspace_bytes<float>(1);
  const auto run = [shape, divisor, total, partial_bytes, logits_type = spec.inputs[0].dtype,
                    labels_type = spec.inputs[1].dtype, uses_loss = spec.uses(0),
                    uses_lse = spec.outputs.size() > 1 && spec.uses(1)](const KernelOperands& operands,
                                                                        LaunchQueue& queue) {
    const Source logits{operands.inputs[0], logits_type};
    const Labels labels{operands.inputs[1], labels_type};
    auto* loss = uses_loss ? static_cast<float*>(operands.outputs[0]) : nullptr;
    auto* log_sum_exps = uses_lse ? static_cast<float*>(operands.outputs[1]) : nullptr;
    auto* losses = static_cast<float*>(operands.workspace);
    if (divisor == 0 || !uses_loss) losses = loss;
    const absl::Status status = WithRowTeam(shape.classes, [&](auto team) {
      using Team = decltype(team);
      return launch(queue, &CrossEntropyKernel<Team>, Team::ShapeFor(shape.rows), logits, labels, losses, log_sum_exps,
                    shape);
    });
    if (!status.ok() || losses == loss) return status;
    return RowReduce<SumOp<float>, 1>(queue, total, PlainTerms{{losses, DType::kF32}}, StoreLoss{loss, divisor},
                                      losses + shape.rows);
  };
  return MakeKernel(run, static_cast<std::size_t>(shape.rows) * sizeof(float) + partial_bytes);
}

/// dlogits of a row = cotangent * (softmax * label_sum - labels); the cotangent is dloss / divisor, or the row's own
/// where the divisor is 0. Behind the classes it is 0.
template <typename Team>
__global__ void __launch_bounds__(Team::kBlockThreads, Team::kBlocksAtOnce)
    CrossEntropyGradKernel(const float* dloss, float divisor, Source logits, Labels labels, const float* log_sum_exps,
                           Sink dlogits, ClassRows shape) {
  AwaitEarlierLaunches();
  for (std::int64_t index = Team::FirstRow(); index < shape.rows; index += Team::RowStep()) {
    Row<Team, 1> row({logits}, index * shape.columns, shape.classes);
    const float cotangent = divisor == 0 ? dloss[index] : *dloss / divisor;
    const float log_sum_exp = log_sum_exps[index];
    const std::int64_t label = labels.dense() ? -1 : labels.Class(index);
    // ---- Sum of the row's labels
    float label_sum = 1;
    if (labels.dense()) {
      label_sum = 0;
      row.ForEachRowVector([&](const auto& elements) {
        float weights[kVector];
        elements.Load(labels.weights(), row.base(), weights);
        for (int i = 0; i < kVector; ++i) {
          if (i < elements.count) label_sum += weights[i];
        }
      });
      label_sum = Team::template Reduce<SumOp<float>>(label_sum);
    }
    // ---- Gradient of the row
    row.Write(dlogits, [&](const auto& elements, const float(&x)[1][kVector], float(&y)[kVector]) {
      float weights[kVector];
      if (labels.dense()) {
        elements.Load(labels.weights(), row.base(), weights);
      } else {
        for (int i = 0; i < kVector; ++i) weights[i] = elements.IndexOf(i) == label ? 1.0f : 0.0f;
      }
      for (int i = 0; i < kVector; ++i) {
        const float probability = scalar::ShareExp(x[0][i] - log_sum_exp);
        y[i] = cotangent * scalar::CrossEntropySlope(weights[i], probability, label_sum);
      }
    });
    // ---- What lies behind the classes
    for (std::int64_t column = shape.classes + threadIdx.x % Team::kThreadsOfTeam; column < shape.columns;
         column += Team::kThreadsOfTeam) {
      dlogits.Store(row.base() + column, 0.0f);
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateCrossEntropyGrad(const KernelSpec& spec, const KernelContext&) {
  if (!LabelsHaveKernel(spec, spec.inputs[2])) return UnsupportedTypes(spec);
  const ClassRows shape = ClassRowsOf(spec, spec.inputs[1]);
  const float divisor = DivisorOf(spec, shape.rows);
  return MakeKernel([shape, divisor, logits_type = spec.inputs[1].dtype, labels_type = spec.inputs[2].dtype,
                     out = spec.outputs[0].dtype](const KernelOperands& operands, LaunchQueue& queue) {
    return WithRowTeam(shape.classes, [&](auto team) {
      using Team = decltype(team);
      return launch(queue, &CrossEntropyGradKernel<Team>, Team::ShapeFor(shape.rows),
                    static_cast<const float*>(operands.inputs[0]), divisor, Source{operands.inputs[1], logits_type},
                    Labels{operands.inputs[2], labels_type}, static_cast<const float*>(operands.inputs[3]),
                    Sink{operands.outputs[0], out}, shape);
    });
  });
}

template <typename Element>
struct ElementLoss {
  __device__ float operator()(float prediction, float target) const { return Element::Loss(prediction, target); }
};

template <typename Element>
struct LossTerms {
  Source prediction, target;

  template <int kWidth>
  struct Row {
    Source prediction, target;
    __device__ __forceinline__ void Add(std::int64_t, std::int64_t index, float (&values)[1]) const {
      float p[kWidth], t[kWidth];
      LoadElements(prediction, index, p);
      LoadElements(target, index, t);
      for (int i = 0; i < kWidth; ++i) values[0] += Element::Loss(p[i], t[i]);
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Row<kWidth> RowAt(std::int64_t) const {
    return {prediction, target};
  }
};

template <typename Element>
absl::StatusOr<std::unique_ptr<Kernel>> CreateElementLoss(const KernelSpec& spec, const KernelContext&) {
  const std::int64_t count = spec.inputs[0].num_elements();
  const float divisor = DivisorOf(spec, count);
  const RowPlan total = RowPlan::For(1, 1, count);
  const auto run = [count, divisor, total, prediction_type = spec.inputs[0].dtype, target_type = spec.inputs[1].dtype](
                       const KernelOperands& operands, LaunchQueue& queue) {
    const Source prediction{operands.inputs[0], prediction_type};
    const Source target{operands.inputs[1], target_type};
    if (divisor == 0) {
      return Map<2>(queue, {{prediction, target}, {operands.outputs[0], DType::kF32}}, ElementLoss<Element>(), count);
    }
    return RowReduce<SumOp<float>, 1>(queue, total, LossTerms<Element>{prediction, target},
                                      StoreLoss{static_cast<float*>(operands.outputs[0]), divisor}, operands.workspace);
  };
  return MakeKernel(run, divisor == 0 ? 0 : total.workspace_bytes<float>(1));
}

/// The gradient where each element has an output gradient of its own.
template <typename Element>
struct ElementSlope {
  __device__ float operator()(float dloss, float prediction, float target) const {
    return Element::kFactor * dloss * Element::Slope(prediction, target);
  }
};

/// The gradient where all elements share one output gradient, which lies in device memory.
template <typename Element>
struct SharedSlope {
  const float* dloss;
  float divisor;
  __device__ float operator()(float prediction, float target) const {
    return Element::kFactor * *dloss / divisor * Element::Slope(prediction, target);
  }
};

template <typename Element>
absl::StatusOr<std::unique_ptr<Kernel>> CreateElementLossGrad(const KernelSpec& spec, const KernelContext&) {
  const std::int64_t count = spec.inputs[1].num_elements();
  const float divisor = DivisorOf(spec, count);
  return MakeKernel([count, divisor, prediction_type = spec.inputs[1].dtype, target_type = spec.inputs[2].dtype,
                     out = spec.outputs[0].dtype](const KernelOperands& operands, LaunchQueue& queue) {
    const Source prediction{operands.inputs[1], prediction_type};
    const Source target{operands.inputs[2], target_type};
    const Sink result{operands.outputs[0], out};
    if (divisor == 0) {
      return Map<3>(queue, {{{operands.inputs[0], DType::kF32}, prediction, target}, result}, ElementSlope<Element>(),
                    count);
    }
    return Map<2>(queue, {{prediction, target}, result},
                  SharedSlope<Element>{static_cast<const float*>(operands.inputs[0]), divisor}, count);
  });
}

}  // namespace

void RegisterLosses(Registry& registry) {
  using namespace scalar;
  registry.Add("softmax_cross_entropy", CreateCrossEntropy);
  registry.Add("softmax_cross_entropy_grad", CreateCrossEntropyGrad, {{0, 1}});
  registry.Add("mse", CreateElementLoss<SquaredError>, {{0, 0}, {0, 1}});
  registry.Add("mse_grad", CreateElementLossGrad<SquaredError>, {{0, 1}, {0, 2}});
  registry.Add("bce_with_logits", CreateElementLoss<BinaryCrossEntropy>, {{0, 0}, {0, 1}});
  registry.Add("bce_with_logits_grad", CreateElementLossGrad<BinaryCrossEntropy>, {{0, 1}, {0, 2}});
}

}  // namespace mpc::cuda
