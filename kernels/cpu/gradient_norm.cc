// scale_loss, global_norm, sum_of_squares, clip_by_norm: what stands between a loss and its optimizer besides the
// finite check.
#include <cmath>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/gradient_blocks.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/state_update.h"
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

// Of values[i] * factor, each rounded.
float SumOfSquares(const float* values, std::int64_t count, float factor) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = values[i] * factor;
    sum += value * value;
  }
  return sum;
}

// One sum a block in `sums`, then the blocks in operand order: the threads that shared them do not matter.
float SumOfSquares(const GradientBlocks& blocks, const void* const* gradients, float factor, void* workspace) {
  float* sums = static_cast<float*>(workspace);
  ParallelFor(blocks.count(), blocks.total(), [&](std::int64_t block) {
    float sum = 0;
    blocks.ForEachPart(block, gradients, [&](const float* values, std::int64_t size) {
      sum += SumOfSquares(values, size, factor);
      return true;
    });
    sums[block] = sum;
  });
  float total = 0;
  for (std::int64_t block = 0; block < blocks.count(); ++block) total += sums[block];
  return total;
}

std::size_t WorkspaceOf(const GradientBlocks& blocks) {
  return static_cast<std::size_t>(blocks.count()) * sizeof(float);
}

// Operands scale, where there is one, gradients, and what sum_of_squares gave of others.
absl::StatusOr<std::unique_ptr<Kernel>> CreateGlobalNorm(const KernelSpec& spec) {
  const bool unscales = spec.attributes.GetBool("unscale");
  const std::size_t first = unscales ? 1 : 0, operand_count = spec.inputs.size();
  const std::size_t first_sum = operand_count - static_cast<std::size_t>(spec.attributes.GetInt("sums", 0));
  GradientBlocks blocks(spec, first, first_sum);
  const std::size_t workspace = WorkspaceOf(blocks);
  return MakeKernel(
      [blocks = std::move(blocks), unscales, first, first_sum, operand_count](const KernelOperands& operands) {
        const float factor = unscales ? 1.0f / ScalarOperand<float>(operands, 0) : 1.0f;
        float total = SumOfSquares(blocks, operands.inputs + first, factor, operands.workspace);
        for (std::size_t i = first_sum; i < operand_count; ++i) total += ScalarOperand<float>(operands, i);
        *static_cast<float*>(operands.outputs[0]) = std::sqrt(total);
      },
      workspace);
}

// Operands gradient and, where it is scaled, scale.
absl::StatusOr<std::unique_ptr<Kernel>> CreateSumOfSquares(const KernelSpec& spec) {
  GradientBlocks blocks(spec, 0, 1);
  const std::size_t workspace = WorkspaceOf(blocks);
  return MakeKernel(
      [blocks = std::move(blocks), unscales = spec.inputs.size() > 1](const KernelOperands& operands) {
        const float factor = unscales ? 1.0f / ScalarOperand<float>(operands, 1) : 1.0f;
        *static_cast<float*>(operands.outputs[0]) = SumOfSquares(blocks, operands.inputs, factor, operands.workspace);
      },
      workspace);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateClipByNorm(const KernelSpec& spec) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     max_norm = FloatAttribute(spec, "max_norm", 1),
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const float factor = scalar::ClipFactor(ScalarOperand<float>(operands, 1), max_norm);
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
