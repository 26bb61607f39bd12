// scale_loss, global_norm, clip_by_norm: what stands between a loss and its optimizer besides the finite check.
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

// One sum a block, then the blocks in operand order: the threads that shared them do not matter.
absl::StatusOr<std::unique_ptr<Kernel>> CreateGlobalNorm(const KernelSpec& spec) {
  const bool unscales = spec.attributes.GetBool("unscale");
  const std::size_t first = unscales ? 1 : 0;
  GradientBlocks blocks(spec, first);
  const std::size_t workspace = static_cast<std::size_t>(blocks.count()) * sizeof(float);
  return MakeKernel(
      [blocks = std::move(blocks), unscales, first](const KernelOperands& operands) {
        float* sums = static_cast<float*>(operands.workspace);
        const float factor = unscales ? 1.0f / ScalarOperand<float>(operands, 0) : 1.0f;
        ParallelFor(blocks.count(), blocks.total(), [&](std::int64_t block) {
          float sum = 0;
          blocks.ForEachPart(block, operands.inputs + first, [&](const float* values, std::int64_t size) {
            sum += SumOfSquares(values, size, factor);
            return true;
          });
          sums[block] = sum;
        });
        float total = 0;
        for (std::int64_t block = 0; block < blocks.count(); ++block) total += sums[block];
        *static_cast<float*>(operands.outputs[0]) = std::sqrt(total);
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
  registry.Add("clip_by_norm", CreateClipByNorm, {{0, 0}});
}

}  // namespace mpc::cpu
