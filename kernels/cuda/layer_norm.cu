// layer_norm and layer_norm_grad: a row is what gamma covers; x, y and their cotangents of any floating storage type,
// parameters and statistics f32. The variance is the mean of (x - mean)^2, in a pass of its own over registers. The
// gradients of the parameters are column sums in a fixed order.
#include <array>
#include <cmath>

#include "kernels/cuda/column_reduce.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/row_pass.h"
#include "kernels/known_attributes.h"

namespace mpc::cuda {
namespace {

using scalar::SumOp;

struct NormResults {
  Sink y;  ///< null data where it is not wanted, as for the others
  float* mean;
  float* inv_std;
};

template <typename Team>
__global__ void __launch_bounds__(Team::kBlockThreads, Team::kBlocksAtOnce)
    LayerNormKernel(Source x, Source gamma, Source beta, NormResults results, std::int64_t rows, std::int64_t width,
                    float epsilon) {
  AwaitEarlierLaunches();
  for (std::int64_t index = Team::FirstRow(); index < rows; index += Team::RowStep()) {
    Row<Team, 1> row({x}, index * width, width);
    // ---- Mean of the row
    float sum = 0;
    row.ForEach([&](const auto& elements, const float(&x)[1][kVector]) {
      for (int i = 0; i < kVector; ++i) {
        if (i < elements.count) sum += x[0][i];
      }
    });
    const float mean = Team::template Reduce<SumOp<float>>(sum) / static_cast<float>(width);
    // ---- Variance of the row
    float squares = 0;
    row.ForEach([&](const auto& elements, const float(&x)[1][kVector]) {
      for (int i = 0; i < kVector; ++i) {
        if (i < elements.count) squares += (x[0][i] - mean) * (x[0][i] - mean);
      }
    });
    const float variance = Team::template Reduce<SumOp<float>>(squares) / static_cast<float>(width);
    const float inv_std = 1.0f / std::sqrt(variance + epsilon);
    // ---- Statistics that are kept
    if (Team::IsFirstThread()) {
      if (results.mean != nullptr) results.mean[index] = mean;
      if (results.inv_std != nullptr) results.inv_std[index] = inv_std;
    }
    // ---- Normalised row
    if (results.y.data == nullptr) continue;
    row.Write(results.y, [&](const auto& elements, const float(&x)[1][kVector], float(&y)[kVector]) {
      float scale[kVector], shift[kVector];
      elements.Load(gamma, 0, scale);
      elements.Load(beta, 0, shift);
      for (int i = 0; i < kVector; ++i) y[i] = (x[0][i] - mean) * inv_std * scale[i] + shift[i];
    });
  }
}

/// Operands of layer_norm_grad; gamma, mean and inv_std are f32.
struct GradOperands {
  Source dy, x, gamma;
  const float *mean, *inv_std;
};

/// dx of a row = inv_std * (g - mean(g) - x_hat * mean(g * x_hat)), g = dy * gamma.
template <typename Team>
__global__ void __launch_bounds__(Team::kBlockThreads, Team::kBlocksAtOnce)
    LayerNormGradKernel(GradOperands in, Sink dx, std::int64_t rows, std::int64_t width) {
  AwaitEarlierLaunches();
  for (std::int64_t index = Team::FirstRow(); index < rows; index += Team::RowStep()) {
    Row<Team, 2> row({in.dy, in.x}, index * width, width);
    const float mean = in.mean[index];
    const float inv_std = in.inv_std[index];
    // ---- Sums over the row
    float sum = 0;
    float centred = 0;
    row.ForEach([&](const auto& elements, const float(&x)[2][kVector]) {
      float gamma[kVector];
      elements.Load(in.gamma, 0, gamma);
      for (int i = 0; i < kVector; ++i) {
        if (i >= elements.count) continue;
        const float g = x[0][i] * gamma[i];
        sum += g;
        centred += g * (x[1][i] - mean);
      }
    });
    // ---- Gradient of the row
    const float shift = Team::template Reduce<SumOp<float>>(sum) / static_cast<float>(width);
    const float slope = Team::template Reduce<SumOp<float>>(centred) * inv_std * inv_std / static_cast<float>(width);
    row.Write(dx, [&](const auto& elements, const float(&x)[2][kVector], float(&dx)[kVector]) {
      float gamma[kVector];
      elements.Load(in.gamma, 0, gamma);
      for (int i = 0; i < kVector; ++i) {
        dx[i] = inv_std * (x[0][i] * gamma[i] - shift - (x[1][i] - mean) * slope);
      }
    });
  }
}

/// dgamma = sum over rows of dy * x_hat, dbeta = sum over rows of dy.
struct ParameterTerms {
  GradOperands in;
  std::int64_t width;

  template <int kWidth>
  struct Columns {
    struct Loaded {
      StoredElements<kWidth> dy, x;
      float mean, inv_std;
    };
    const ParameterTerms& terms;
    std::int64_t column;

    __device__ __forceinline__ Loaded Load(std::int64_t row) const {
      const GradOperands& in = terms.in;
      const std::int64_t at = row * terms.width + column;
      return {LoadStored<kWidth>(in.dy, at), LoadStored<kWidth>(in.x, at), in.mean[row], in.inv_std[row]};
    }
    __device__ __forceinline__ void Add(const Loaded& loaded, std::int64_t, float (&values)[2][kWidth]) const {
      float dy[kWidth], x[kWidth];
      WidenStored(terms.in.dy, loaded.dy, dy);
      WidenStored(terms.in.x, loaded.x, x);
      for (int i = 0; i < kWidth; ++i) {
        values[0][i] += dy[i] * ((x[i] - loaded.mean) * loaded.inv_std);
        values[1][i] += dy[i];
      }
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Columns<kWidth> ColumnsAt(std::int64_t, std::int64_t column) const {
    return {*this, column};
  }
};

struct StoreParameterGradients {
  float *dgamma, *dbeta;  ///< null: not wanted
  __device__ void operator()(std::int64_t column, const float (&values)[2]) const {
    if (dgamma != nullptr) dgamma[column] = values[0];
    if (dbeta != nullptr) dbeta[column] = values[1];
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateLayerNorm(const KernelSpec& spec, const KernelContext&) {
  const std::int64_t width = spec.inputs[1].num_elements();
  const std::int64_t rows = width == 0 ? 0 : spec.inputs[0].num_elements() / width;
  return MakeKernel(
      [width, rows, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
       used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)},
       epsilon = spec.attributes.Get(attribute::kEpsilon)](const KernelOperands& operands, LaunchQueue& queue) {
        const NormResults results{{used[0] ? operands.outputs[0] : nullptr, out},
                                  used[1] ? static_cast<float*>(operands.outputs[1]) : nullptr,
                                  used[2] ? static_cast<float*>(operands.outputs[2]) : nullptr};
        return WithRowTeam(width, [&](auto team) {
          using Team = decltype(team);
          return launch(queue, &LayerNormKernel<Team>, Team::ShapeFor(rows), Source{operands.inputs[0], in},
                        Source{operands.inputs[1], DType::kF32}, Source{operands.inputs[2], DType::kF32}, results, rows,
                        width, epsilon);
        });
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateLayerNormGrad(const KernelSpec& spec, const KernelContext&) {
  const std::int64_t width = spec.inputs[2].num_elements();
  const std::int64_t rows = width == 0 ? 0 : spec.inputs[1].num_elements() / width;
  const ColumnPlan parameters = ColumnPlan::For(1, rows, width);
  const auto run = [width, rows, parameters, dy_type = spec.inputs[0].dtype, x_type = spec.inputs[1].dtype,
                    dx_type = spec.outputs[0].dtype,
                    used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)}](
                       const KernelOperands& operands, LaunchQueue& queue) -> absl::Status {
    const GradOperands in{{operands.inputs[0], dy_type},
                          {operands.inputs[1], x_type},
                          {operands.inputs[2], DType::kF32},
                          static_cast<const float*>(operands.inputs[3]),
                          static_cast<const float*>(operands.inputs[4])};
    // The sums come first, since dx may lie where dy or x do.
    if (used[1] || used[2]) {
      const StoreParameterGradients store{used[1] ? static_cast<float*>(operands.outputs[1]) : nullptr,
                                          used[2] ? static_cast<float*>(operands.outputs[2]) : nullptr};
      const absl::Status status =
          ColumnReduce<SumOp<float>, 2>(queue, parameters, ParameterTerms{in, width}, store, operands.workspace);
      if (!status.ok()) return status;
    }
    if (!used[0]) return absl::OkStatus();
    return WithRowTeam(width, [&](auto team) {
      using Team = decltype(team);
      return launch(queue, &LayerNormGradKernel<Team>, Team::ShapeFor(rows), in, Sink{operands.outputs[0], dx_type},
                    rows, width);
    });
  };
  return MakeKernel(run, parameters.workspace_bytes<float>(2));
}

}  // namespace

void RegisterLayerNorm(Registry& registry) {
  registry.Add("layer_norm", CreateLayerNorm, {{0, 0}});
  registry.Add("layer_norm_grad", CreateLayerNormGrad, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cuda
