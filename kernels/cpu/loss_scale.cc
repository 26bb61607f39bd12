// all_finite over gradients of any floating storage type, check_finite of one gradient, and the loss-scale state
// machine of update_loss_scale.
#include "kernels/scalar/loss_scale.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/gradient_blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

// Whether values[i] * factor is finite for every i. Exponent bits are tested as integers, without branches.
bool ProductsAreFinite(const float* values, std::int64_t size, float factor) {
  std::uint32_t bad = 0;
#pragma omp simd reduction(| : bad)
  for (std::int64_t i = 0; i < size; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[i] * factor) & 0x7f800000u;
    bad |= bits == 0x7f800000u ? 1u : 0u;
  }
  return bad == 0;
}

// Whether every 16-bit value is finite: its exponent, the bits of `mask`, is not all ones.
bool ExponentsAreFinite(const void* gradient, std::int64_t offset, std::int64_t size, std::uint16_t mask) {
  const std::uint16_t* values = static_cast<const std::uint16_t*>(gradient) + offset;
  std::uint16_t bad = 0;
#pragma omp simd reduction(| : bad)
  for (std::int64_t i = 0; i < size; ++i) {
    bad = static_cast<std::uint16_t>(bad | ((values[i] & mask) == mask ? 1 : 0));
  }
  return bad == 0;
}

constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

// The position of the block's gradient if the block holds a value whose product with `inverse` is not finite. A
// gradient may also be a flag that says whether it is finite. kNone if all is finite.
std::int32_t FirstBadOfBlock(const GradientBlocks& blocks, std::int64_t block, const void* const* gradients,
                             float inverse) {
  const TensorBlocks::Block part = blocks.BlockAt(block);
  const DType dtype = blocks.dtype(part.tensor);
  bool finite = true;
  if (dtype == DType::kBool) {
    finite = *static_cast<const std::uint8_t*>(gradients[part.tensor]) != 0;
    return finite ? kNone : static_cast<std::int32_t>(part.tensor);
  }
  // A factor of at most 1 makes nothing infinite, so that a low gradient need not be widened to be judged.
  if (dtype != DType::kF32 && std::abs(inverse) <= 1.0f) {
    const std::uint16_t exponent = dtype == DType::kF16 ? 0x7c00 : 0x7f80;
    finite = ExponentsAreFinite(gradients[part.tensor], part.offset, part.size, exponent);
  } else {
    blocks.ForEachPart(block, gradients, [&](const float* values, std::int64_t size) {
      finite = ProductsAreFinite(values, size, inverse);
      return finite;
    });
  }
  return finite ? kNone : static_cast<std::int32_t>(part.tensor);
}

// The position of the first gradient that is not finite, else kNone.
std::int32_t FirstBad(const GradientBlocks& blocks, const void* const* gradients, float inverse) {
  std::atomic<std::int32_t> first_bad = kNone;
  ParallelFor(blocks.count(), blocks.total(), [&](std::int64_t block) {
    const std::int32_t bad = FirstBadOfBlock(blocks, block, gradients, inverse);
    std::int32_t first = first_bad.load(std::memory_order_relaxed);
    while (bad < first && !first_bad.compare_exchange_weak(first, bad, std::memory_order_relaxed)) {
    }
  });
  return first_bad;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAllFinite(const KernelSpec& spec) {
  return MakeKernel([blocks = GradientBlocks(spec, 2, spec.inputs.size()), loss_type = spec.inputs[1].dtype,
                     loss_count = spec.inputs[1].num_elements(),
                     used = std::array<bool, 2>{spec.uses(0), spec.uses(1)}](const KernelOperands& operands) {
    const float inverse = 1.0f / *static_cast<const float*>(operands.inputs[0]);
    std::int32_t first_bad = FirstBad(blocks, operands.inputs + 2, inverse);
    if (first_bad == kNone) {
      const Source loss{loss_type, operands.inputs[1]};
      first_bad = -1;
      for (std::int64_t i = 0; i < loss_count; ++i) {
        if (!std::isfinite(loss.ElementAt(i))) first_bad = -2;
      }
    }
    if (used[0]) *static_cast<std::uint8_t*>(operands.outputs[0]) = first_bad == -1;
    if (used[1]) *static_cast<std::int32_t*>(operands.outputs[1]) = first_bad;
  });
}

// The operands are the gradient and the scale.
absl::StatusOr<std::unique_ptr<Kernel>> CreateCheckFinite(const KernelSpec& spec) {
  if (spec.inputs[0].dtype == DType::kF64) {
    return MakeKernel([](const KernelOperands& operands) {
      const double inverse = 1.0 / double{*static_cast<const float*>(operands.inputs[1])};
      *static_cast<std::uint8_t*>(operands.outputs[0]) =
          std::isfinite(*static_cast<const double*>(operands.inputs[0]) * inverse);
    });
  }
  return MakeKernel([blocks = GradientBlocks(spec, 0, 1)](const KernelOperands& operands) {
    const float inverse = 1.0f / *static_cast<const float*>(operands.inputs[1]);
    *static_cast<std::uint8_t*>(operands.outputs[0]) = FirstBad(blocks, operands.inputs, inverse) == kNone;
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateUpdateLossScale(const KernelSpec& spec) {
  std::array<bool, 5> used;
  for (std::size_t i = 0; i < used.size(); ++i) used[i] = spec.uses(i);
  return MakeKernel([used](const KernelOperands& operands) {
    const auto real = [&](std::size_t i) { return *static_cast<const float*>(operands.inputs[i]); };
    const auto integer = [&](std::size_t i) { return *static_cast<const std::int32_t*>(operands.inputs[i]); };
    const scalar::LossScaleOptions options{real(6),     real(7),     real(8),          real(9),
                                           integer(10), integer(11), integer(12) != 0, integer(13) != 0};
    const scalar::LossScaleState next =
        scalar::NextState(integer(0), {real(1), integer(2), integer(3), integer(4), integer(5)}, options);
    if (used[0]) *static_cast<float*>(operands.outputs[0]) = next.scale;
    const std::int32_t counters[] = {next.good, next.bad, next.skipped, next.consecutive};
    for (std::size_t i = 0; i < 4; ++i) {
      if (used[i + 1]) *static_cast<std::int32_t*>(operands.outputs[i + 1]) = counters[i];
    }
  });
}

}  // namespace

void RegisterLossScale(Registry& registry) {
  registry.Add("all_finite", CreateAllFinite);
  registry.Add("check_finite", CreateCheckFinite);
  registry.Add("update_loss_scale", CreateUpdateLossScale, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}});
}

}  // namespace mpc::cpu
