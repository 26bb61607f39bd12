// layer_norm and layer_norm_grad: a row is what gamma covers; x, y and their cotangents of any floating storage type,
// parameters and statistics f32. The variance is the mean of (x - mean)^2, in a pass of its own.
#include <cmath>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/softmax_rows.h"

namespace mpc::cpu {
namespace {

float RowMean(Source x, std::int64_t base, std::int64_t width) {
  float sum = 0;
  ForEachRowBlock(x, base, width,
                  [&](std::int64_t, std::int64_t size, const float* values) { sum += SumOf(values, size); });
  return sum / static_cast<float>(width);
}

float RowVariance(Source x, std::int64_t base, std::int64_t width, float mean) {
  float squares = 0;
  ForEachRowBlock(x, base, width, [&](std::int64_t, std::int64_t size, const float* values) {
    float block_squares = 0;
#pragma omp simd reduction(+ : block_squares)
    for (std::int64_t i = 0; i < size; ++i) block_squares += (values[i] - mean) * (values[i] - mean);
    squares += block_squares;
  });
  return squares / static_cast<float>(width);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLayerNorm(const KernelSpec& spec) {
  const std::int64_t width = spec.inputs[1].num_elements();
  const auto run =
      [width, rows = spec.inputs[0].num_elements() / width, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
       used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)},
       epsilon = static_cast<float>(spec.attributes.GetDouble("epsilon", 1e-5f))](const KernelOperands& operands) {
        const Source x{in, operands.inputs[0]};
        const auto* gamma = static_cast<const float*>(operands.inputs[1]);
        const auto* beta = static_cast<const float*>(operands.inputs[2]);
        const Sink y{out, operands.outputs[0]};
        ParallelFor(rows, rows * width * 3, [&](std::int64_t row) {
          const std::int64_t base = row * width;
          const float mean = RowMean(x, base, width);
          const float inv_std = 1.0f / std::sqrt(RowVariance(x, base, width, mean) + epsilon);
          if (used[1]) static_cast<float*>(operands.outputs[1])[row] = mean;
          if (used[2]) static_cast<float*>(operands.outputs[2])[row] = inv_std;
          if (!used[0]) return;
          ForEachRowBlock(x, base, width, [&](std::int64_t start, std::int64_t size, const float* values) {
            BlockBuffer buffer;
            float* target = y.Target(base + start, buffer.values);
#pragma omp simd
            for (std::int64_t i = 0; i < size; ++i) {
              target[i] = (values[i] - mean) * inv_std * gamma[start + i] + beta[start + i];
            }
            y.Commit(base + start, size, target);
          });
        });
      };
  return MakeKernel(run);
}

/// Operands of layer_norm_grad.
struct Cotangent {
  Source dy, x;
  const float *gamma, *mean, *inv_std;
};

// dx of one row = inv_std * (g - mean(g) - x_hat * mean(g * x_hat)), g = dy * gamma.
void InputGradientRow(const Cotangent& in, Sink dx, std::int64_t row, std::int64_t width) {
  const std::int64_t base = row * width;
  const float mean = in.mean[row];
  const float inv_std = in.inv_std[row];
  BlockBuffer x_buffer, dx_buffer;
  float sum = 0;
  float centred = 0;
  ForEachRowBlock(in.dy, base, width, [&](std::int64_t start, std::int64_t size, const float* dy) {
    const float* x = in.x.Load(base + start, size, x_buffer.values);
    const float* gamma = in.gamma + start;
    float block_sum = 0;
    float block_centred = 0;
#pragma omp simd reduction(+ : block_sum, block_centred)
    for (std::int64_t i = 0; i < size; ++i) {
      const float g = dy[i] * gamma[i];
      block_sum += g;
      block_centred += g * (x[i] - mean);
    }
    sum += block_sum;
    centred += block_centred;
  });
  const float shift = sum / static_cast<float>(width);
  const float slope = centred * inv_std * inv_std / static_cast<float>(width);
  ForEachRowBlock(in.dy, base, width, [&](std::int64_t start, std::int64_t size, const float* dy) {
    const float* x = in.x.Load(base + start, size, x_buffer.values);
    const float* gamma = in.gamma + start;
    float* target = dx.Target(base + start, dx_buffer.values);
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) {
      target[i] = inv_std * (dy[i] * gamma[i] - shift - (x[i] - mean) * slope);
    }
    dx.Commit(base + start, size, target);
  });
}

// dgamma = sum over rows of dy * x_hat, dbeta = sum over rows of dy; null where not wanted.
void ParameterGradients(const Cotangent& in, const ColumnTiling& tiling, float* partial, float* dgamma, float* dbeta) {
  SumColumns<2>(tiling, partial, {dgamma, dbeta}, [&](std::int64_t) {
    return [&](std::int64_t offset, std::int64_t size, float(*sums)[kBlock / 2]) {
      float dy_buffer[kBlock / 2], x_buffer[kBlock / 2];
      const float* dy = in.dy.Load(offset, size, dy_buffer);
      const float* x = in.x.Load(offset, size, x_buffer);
      // A run holds whole rows, or a part of one.
      for (std::int64_t begin = 0; begin < size; begin += tiling.columns) {
        const std::int64_t row = (offset + begin) / tiling.columns;
        const std::int64_t end = std::min(size, begin + tiling.columns);
        const float mean = in.mean[row];
        const float inv_std = in.inv_std[row];
        float* gamma_sum = sums[0];
        float* beta_sum = sums[1];
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) {
          gamma_sum[i] += dy[i] * ((x[i] - mean) * inv_std);
          beta_sum[i] += dy[i];
        }
      }
    };
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLayerNormGrad(const KernelSpec& spec) {
  const std::int64_t width = spec.inputs[2].num_elements();
  const std::int64_t rows = spec.inputs[1].num_elements() / width;
  const ColumnTiling tiling = ColumnTiling::For(rows, width);
  const auto run = [width, rows, tiling, dy_type = spec.inputs[0].dtype, x_type = spec.inputs[1].dtype,
                    dx_type = spec.outputs[0].dtype,
                    used =
                        std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)}](const KernelOperands& operands) {
    const Cotangent in{{dy_type, operands.inputs[0]},
                       {x_type, operands.inputs[1]},
                       static_cast<const float*>(operands.inputs[2]),
                       static_cast<const float*>(operands.inputs[3]),
                       static_cast<const float*>(operands.inputs[4])};
    // First the sums: dx may lie where dy or x do.
    if (used[1] || used[2]) {
      ParameterGradients(in, tiling, static_cast<float*>(operands.workspace), static_cast<float*>(operands.outputs[1]),
                         static_cast<float*>(operands.outputs[2]));
    }
    if (!used[0]) return;
    const Sink dx{dx_type, operands.outputs[0]};
    ParallelFor(rows, rows * width * 3, [&](std::int64_t row) { InputGradientRow(in, dx, row, width); });
  };
  return MakeKernel(run, tiling.partial_count(2) * sizeof(float));
}

}  // namespace

void RegisterLayerNorm(Registry& registry) {
  registry.Add("layer_norm", CreateLayerNorm, {{0, 0}});
  registry.Add("layer_norm_grad", CreateLayerNormGrad, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cpu
