// scale_loss, global_norm, sum_of_squares, clip_by_norm: the operations between a loss and its optimizer, except the
// finite check.
#include <cmath>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/gradient_blocks.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/state_update.h"
#include "kernels/cpu/sum_of_squares.h"
#include "kernels/f64_scalars.h"
#include "kernels/scalar/clip.h"

namespace mpc::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> CreateScaleLoss(const KernelSpec& spec) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const auto scale = ScalarOperand<float>(operands, 1);
    Map({in, operands.inputs[0]}, {out, operands.outputs[0]}, count, [scale](float loss) { return loss * scale; });
  });
}

// Computes one sum for each block, then adds the blocks in operand order. So the result does not depend on the threads.
double SumOfBlocks(const GradientBlocks& blocks, const void* const* gradients, float factor, void* workspace) {
  double* sums = static_cast<double*>(workspace);
  ParallelFor(blocks.count(), blocks.total(), [&](std::int64_t block) {
    double sum = 0;
    blocks.ForEachPart(block, gradients, [&](const float* values, std::int64_t size) {
      sum += SumOfSquares(values, size, factor);
      return true;
    });
    sums[block] = sum;
  });
  double total = 0;
  for (std::int64_t block = 0; block < blocks.count(); ++block) total += sums[block];
  return total;
}

std::size_t WorkspaceOf(const GradientBlocks& blocks) {
  return static_cast<std::size_t>(blocks.count()) * sizeof(double);
}

// The operands are the scale (if there is one), gradients, and the results of sum_of_squares for other gradients.
absl::StatusOr<std::unique_ptr<Kernel>> CreateGlobalNorm(const KernelSpec& spec) {
  const bool unscales = spec.attributes.GetBool("unscale");
  const std::size_t first = unscales ? 1 : 0, operand_count = spec.inputs.size();
  const std::size_t first_sum = operand_count - static_cast<std::size_t>(spec.attributes.GetInt("sums"));
  std::vector<DType> sum_types;
  for (std::size_t i = first_sum; i < operand_count; ++i) sum_types.push_back(spec.inputs[i].dtype);
  GradientBlocks blocks(spec, first, first_sum);
  const std::size_t workspace = WorkspaceOf(blocks);
  return MakeKernel(
      [blocks = std::move(blocks), unscales, first, first_sum, sum_types = std::move(sum_types),
       result = spec.outputs[0].dtype](const KernelOperands& operands) {
        const float factor = unscales ? 1.0f / ScalarOperand<float>(operands, 0) : 1.0f;
        double total = SumOfBlocks(blocks, operands.inputs + first, factor, operands.workspace);
        for (std::size_t i = 0; i < sum_types.size(); ++i) {
          total += LoadWideScalar(sum_types[i], operands.inputs[first_sum + i]);
        }
        StoreWideScalar(result, std::sqrt(total), operands.outputs[0]);
      },
      workspace);
}

// The operands are the gradient and, where it is scaled, the scale.
absl::StatusOr<std::unique_ptr<Kernel>> CreateSumOfSquares(const KernelSpec& spec) {
  GradientBlocks blocks(spec, 0, 1);
  const std::size_t workspace = WorkspaceOf(blocks);
  return MakeKernel(
      [blocks = std::move(blocks), unscales = spec.inputs.size() > 1,
       result = spec.outputs[0].dtype](const KernelOperands& operands) {
        const float factor = unscales ? 1.0f / ScalarOperand<float>(operands, 1) : 1.0f;
        StoreWideScalar(result, SumOfBlocks(blocks, operands.inputs, factor, operands.workspace), operands.outputs[0]);
      },
      workspace);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateClipByNorm(const KernelSpec& spec) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     norm_is_f64 = spec.inputs[1].dtype == DType::kF64, max_norm = FloatAttribute(spec, "max_norm"),
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const float factor = scalar::NormOperand{operands.inputs[1], norm_is_f64}.Factor(max_norm);
    Map({in, operands.inputs[0]}, {out, operands.outputs[0]}, count, [factor](float g) { return g * factor; });
  });
}

}  // namespace

void RegisterGradientNorm(Registry& registry) {
  registry.Add("scale_loss", CreateScaleLoss, {{0, 0}});
  registry.Add("global_norm", CreateGlobalNorm);
  registry.Add("sum_of_squares", CreateSumOfSquares);
  registry.Add("clip_by_norm", CreateClipByNorm, {{0, 0}});
}

}  // namespace mpc::cpu
