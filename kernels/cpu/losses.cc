// softmax_cross_entropy, mse and bce_with_logits with their gradients. Logits [N, C] row by row, labels dense
// (floating) or sparse (i32, i64); other operands of any shape in blocks. Row and block losses lie in the workspace and
// are added in order.
#include "kernels/scalar/losses.h"

#include <limits>
#include <string>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/softmax_rows.h"

namespace mpc::cpu {
namespace {

struct Labels {
  DType dtype;
  const void* data;

  bool dense() const { return IsFloating(dtype); }
  std::int64_t Class(std::int64_t row) const {
    return dtype == DType::kI32 ? static_cast<const std::int32_t*>(data)[row]
                                : static_cast<const std::int64_t*>(data)[row];
  }
};

bool LabelsHaveKernel(const KernelSpec& spec, const TensorSpec& labels) {
  return labels.dtype != DType::kBool && spec.outputs[0].dtype != DType::kBool;
}

// sum_c labels * (log_sum_exp - logits).
float DenseLoss(Source logits, Source labels, std::int64_t base, std::int64_t classes, float log_sum_exp) {
  float loss = 0;
  BlockBuffer buffer;
  ForEachRowBlock(logits, base, classes, [&](std::int64_t start, std::int64_t size, const float* values) {
    const float* weights = labels.Load(base + start, size, buffer.values);
    float block_loss = 0;
#pragma omp simd reduction(+ : block_loss)
    for (std::int64_t i = 0; i < size; ++i) {
      block_loss += scalar::CrossEntropyTerm(weights[i], values[i], log_sum_exp);
    }
    loss += block_loss;
  });
  return loss;
}

float SparseLoss(Source logits, std::int64_t label, std::int64_t base, std::int64_t classes, float log_sum_exp) {
  if (label < 0 || label >= classes) return std::numeric_limits<float>::quiet_NaN();
  return log_sum_exp - logits.At(base + label);
}

// What the sum of element losses is divided by to give the loss; 0 for `none`.
float DivisorOf(const KernelSpec& spec, std::int64_t count) {
  const std::string reduction = spec.attributes.GetString("reduction", "mean");
  if (reduction == "none") return 0;
  return reduction == "mean" ? static_cast<float>(count) : 1.0f;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateCrossEntropy(const KernelSpec& spec) {
  if (!LabelsHaveKernel(spec, spec.inputs[1])) return UnsupportedTypes(spec);
  const std::int64_t rows = spec.inputs[0].shape[0];
  const std::int64_t classes = spec.inputs[0].shape[1];
  const float divisor = DivisorOf(spec, rows);
  const auto run = [rows, classes, divisor, logits_type = spec.inputs[0].dtype, labels_type = spec.inputs[1].dtype,
                    uses_loss = spec.uses(0),
                    uses_lse = spec.outputs.size() > 1 && spec.uses(1)](const KernelOperands& operands) {
    const Source logits{logits_type, operands.inputs[0]};
    const Labels labels{labels_type, operands.inputs[1]};
    float* losses = static_cast<float*>(operands.workspace);
    ParallelFor(rows, rows * classes * 4, [&](std::int64_t row) {
      const std::int64_t base = row * classes;
      const float largest = RowMaximum(logits, base, classes);
      const float log_sum_exp = largest + scalar::Log(RowSumExp(logits, base, classes, largest));
      if (uses_lse) static_cast<float*>(operands.outputs[1])[row] = log_sum_exp;
      losses[row] = labels.dense() ? DenseLoss(logits, {labels_type, labels.data}, base, classes, log_sum_exp)
                                   : SparseLoss(logits, labels.Class(row), base, classes, log_sum_exp);
    });
    if (!uses_loss) return;
    float* loss = static_cast<float*>(operands.outputs[0]);
    if (divisor == 0) {
      std::copy_n(losses, rows, loss);
    } else {
      *loss = SumOf(losses, rows) / divisor;
    }
  };
  return MakeKernel(run, static_cast<std::size_t>(rows) * sizeof(float));
}

// dlogits of one row = cotangent * (softmax * label_sum - labels).
void CrossEntropyGradRow(Source logits, const Labels& labels, Sink dlogits, std::int64_t row, std::int64_t classes,
                         float log_sum_exp, float cotangent) {
  const std::int64_t base = row * classes;
  const Source dense{labels.dtype, labels.data};
  float label_sum = labels.dense() ? 0.0f : 1.0f;
  if (labels.dense()) {
    ForEachRowBlock(dense, base, classes,
                    [&](std::int64_t, std::int64_t size, const float* weights) { label_sum += SumOf(weights, size); });
  }
  const std::int64_t label = labels.dense() ? -1 : labels.Class(row);
  BlockBuffer weight_buffer, result;
  ForEachRowBlock(logits, base, classes, [&](std::int64_t start, std::int64_t size, const float* values) {
    const float* weights = weight_buffer.values;
    if (labels.dense()) {
      weights = dense.Load(base + start, size, weight_buffer.values);
    } else {
      std::fill_n(weight_buffer.values, size, 0.0f);
      if (label >= start && label < start + size) weight_buffer.values[label - start] = 1.0f;
    }
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) {
      result.values[i] = cotangent * scalar::CrossEntropySlope(weights[i], values[i], log_sum_exp, label_sum);
    }
    StoreFloats(dlogits.dtype, result.values, dlogits.data, base + start, size);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateCrossEntropyGrad(const KernelSpec& spec) {
  if (!LabelsHaveKernel(spec, spec.inputs[2])) return UnsupportedTypes(spec);
  const std::int64_t rows = spec.inputs[1].shape[0];
  const std::int64_t classes = spec.inputs[1].shape[1];
  const float divisor = DivisorOf(spec, rows);
  return MakeKernel([rows, classes, divisor, logits_type = spec.inputs[1].dtype, labels_type = spec.inputs[2].dtype,
                     out = spec.outputs[0].dtype](const KernelOperands& operands) {
    const float* dloss = static_cast<const float*>(operands.inputs[0]);
    const Source logits{logits_type, operands.inputs[1]};
    const Labels labels{labels_type, operands.inputs[2]};
    const float* log_sum_exp = static_cast<const float*>(operands.inputs[3]);
    ParallelFor(rows, rows * classes * 4, [&](std::int64_t row) {
      const float cotangent = divisor == 0 ? dloss[row] : *dloss / divisor;
      CrossEntropyGradRow(logits, labels, {out, operands.outputs[0]}, row, classes, log_sum_exp[row], cotangent);
    });
  });
}

template <typename Element>
absl::StatusOr<std::unique_ptr<Kernel>> CreateElementLoss(const KernelSpec& spec) {
  const std::int64_t count = spec.inputs[0].num_elements();
  const float divisor = DivisorOf(spec, count);
  const auto run = [count, divisor, prediction_type = spec.inputs[0].dtype,
                    target_type = spec.inputs[1].dtype](const KernelOperands& operands) {
    const Source prediction{prediction_type, operands.inputs[0]};
    const Source target{target_type, operands.inputs[1]};
    float* loss = static_cast<float*>(operands.outputs[0]);
    float* partial = static_cast<float*>(operands.workspace);
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer prediction_buffer, target_buffer, squares;
      const float* p = prediction.Load(offset, size, prediction_buffer.values);
      const float* t = target.Load(offset, size, target_buffer.values);
      float* result = divisor == 0 ? loss + offset : squares.values;
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) result[i] = Element::Loss(p[i], t[i]);
      if (divisor != 0) partial[offset / kBlock] = SumOf(result, size);
    });
    if (divisor != 0) *loss = SumOf(partial, (count + kBlock - 1) / kBlock) / divisor;
  };
  return MakeKernel(run, static_cast<std::size_t>((count + kBlock - 1) / kBlock) * sizeof(float));
}

template <typename Element>
absl::StatusOr<std::unique_ptr<Kernel>> CreateElementLossGrad(const KernelSpec& spec) {
  const std::int64_t count = spec.inputs[1].num_elements();
  const float divisor = DivisorOf(spec, count);
  return MakeKernel([count, divisor, prediction_type = spec.inputs[1].dtype, target_type = spec.inputs[2].dtype,
                     out = spec.outputs[0].dtype](const KernelOperands& operands) {
    const float* dloss = static_cast<const float*>(operands.inputs[0]);
    const Source prediction{prediction_type, operands.inputs[1]};
    const Source target{target_type, operands.inputs[2]};
    const Sink result{out, operands.outputs[0]};
    const float shared = divisor == 0 ? 0.0f : Element::kFactor * *dloss / divisor;
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer prediction_buffer, target_buffer, cotangents, result_buffer;
      const float* p = prediction.Load(offset, size, prediction_buffer.values);
      const float* t = target.Load(offset, size, target_buffer.values);
      for (std::int64_t i = 0; i < size; ++i) {
        cotangents.values[i] = divisor == 0 ? Element::kFactor * dloss[offset + i] : shared;
      }
      float* dp = result.Target(offset, result_buffer.values);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) dp[i] = cotangents.values[i] * Element::Slope(p[i], t[i]);
      result.Commit(offset, size, dp);
    });
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

}  // namespace mpc::cpu
