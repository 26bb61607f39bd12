// sgd, momentum, adam, adam_weight_decay, adamw, lamb. Parameters and gradients of any floating storage type, optimizer
// state f32, all of one shape. Each block of every operand is read before its results are written, so results may lie
// in their state operands' storage. The shadow, an f32 parameter's low copy, is written in the same pass. A false
// predicate copies the state, or does nothing where it is updated in place.
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/state_update.h"
#include "kernels/optimizer_shadow.h"
#include "kernels/scalar/optimizer_rules.h"

namespace mpc::cpu {
namespace {

// The operands of one update with `kStates` f32 states after the parameter.
template <int kStates>
struct UpdateTensors {
  DType parameter_type, gradient_type;
  std::int64_t count;

  struct Block {
    BlockBuffer parameter, state1, state2, gradient_buffer;
    const float* gradient;
  };
  void Load(const KernelOperands& operands, std::int64_t offset, std::int64_t size, Block& block) const {
    LoadFloats(parameter_type, operands.inputs[0], offset, size, block.parameter.values);
    LoadFloats(DType::kF32, operands.inputs[1], offset, size, block.state1.values);
    if constexpr (kStates > 1) LoadFloats(DType::kF32, operands.inputs[2], offset, size, block.state2.values);
    const Source source{gradient_type, operands.inputs[kStates + 1]};
    block.gradient = source.Load(offset, size, block.gradient_buffer.values);
  }
};

template <typename Rule>
constexpr bool kNeedsNorms = requires(const Rule& rule, const scalar::StepScalars& scalars) {
  rule.Direction(scalars);
};

template <typename Rule>
scalar::StepScalars ReadScalars(const KernelOperands& operands) {
  return {ScalarOperand<float>(operands, Rule::kStates + 2),
          Rule::kHasStep ? ScalarOperand<std::int32_t>(operands, Rule::kStates + 3) : 0};
}

std::int64_t BlocksOf(std::int64_t count) { return (count + kBlock - 1) / kBlock; }

// The element functor of one run. Norms are sums of blocks in f32, added in the order of the blocks.
template <typename Rule>
auto BeginStep(const Rule& rule, const UpdateTensors<Rule::kStates>& tensors, const KernelOperands& operands) {
  const scalar::StepScalars scalars = ReadScalars<Rule>(operands);
  if constexpr (kNeedsNorms<Rule>) {
    const auto direction = rule.Direction(scalars);
    float* sums = static_cast<float*>(operands.workspace);
    ParallelBlocks(tensors.count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      typename UpdateTensors<Rule::kStates>::Block block;
      tensors.Load(operands, offset, size, block);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        const float p = block.parameter.values[i];
        const float u = direction(p, block.state1.values[i], block.state2.values[i], block.gradient[i]);
        block.parameter.values[i] = p * p;
        block.state1.values[i] = u * u;
      }
      sums[2 * (offset / kBlock)] = SumOf(block.parameter.values, size);
      sums[2 * (offset / kBlock) + 1] = SumOf(block.state1.values, size);
    });
    float parameter = 0, update = 0;
    for (std::int64_t block = 0; block < BlocksOf(tensors.count); ++block) {
      parameter += sums[2 * block];
      update += sums[2 * block + 1];
    }
    return rule.Begin(scalars, std::sqrt(parameter), std::sqrt(update));
  } else {
    return rule.Begin(scalars);
  }
}

// What a skipped update leaves: the old state, and the old parameter rounded.
template <int kStates>
struct OldState {
  std::array<bool, kStates + 1> used;
  std::array<std::size_t, kStates + 1> bytes;

  void Keep(const KernelOperands& operands) const {
    for (std::size_t i = 0; i <= kStates; ++i) {
      if (used[i] && operands.outputs[i] != operands.inputs[i]) {
        std::memcpy(operands.outputs[i], operands.inputs[i], bytes[i]);
      }
    }
  }
};

template <typename Rule>
absl::StatusOr<std::unique_ptr<Kernel>> CreateOptimizer(const KernelSpec& spec) {
  constexpr int kStates = Rule::kStates;
  constexpr std::size_t kShadow = kStates + 1, kPredicate = kStates + (Rule::kHasStep ? 4 : 3);
  OldState<kStates> old;
  for (std::size_t i = 0; i <= kStates; ++i) {
    old.bytes[i] = spec.inputs[i].bytes();
    old.used[i] = spec.uses(i);
    const DType wanted = i == 0 ? spec.inputs[0].dtype : DType::kF32;
    if (spec.inputs[i].dtype != wanted || (old.used[i] && spec.outputs[i].dtype != wanted)) {
      return UnsupportedTypes(spec);
    }
  }
  const std::optional<DType> shadow = ShadowType(spec, kShadow);
  if (!shadow) return UnsupportedTypes(spec);
  const UpdateTensors<kStates> tensors{spec.inputs[0].dtype, spec.inputs[kStates + 1].dtype,
                                       spec.inputs[0].num_elements()};
  const auto sums = static_cast<std::size_t>(2 * BlocksOf(tensors.count)) * sizeof(float);
  return MakeKernel(
      [rule = Rule(spec), old, tensors, predicate = Predicate(spec, kPredicate),
       shadow = *shadow](const KernelOperands& operands) {
        const bool has_shadow = shadow != DType::kF32;
        if (!predicate.Holds(operands)) {
          old.Keep(operands);
          if (!has_shadow) return;
          ParallelBlocks(tensors.count, kBlock, [&](std::int64_t offset, std::int64_t size) {
            const float* parameter = static_cast<const float*>(operands.inputs[0]) + offset;
            StoreFloats(shadow, parameter, operands.outputs[kShadow], offset, size);
          });
          return;
        }
        const auto step = BeginStep(rule, tensors, operands);
        ParallelBlocks(tensors.count, kBlock, [&](std::int64_t offset, std::int64_t size) {
          typename UpdateTensors<kStates>::Block block;
          tensors.Load(operands, offset, size, block);
          float *p = block.parameter.values, *state1 = block.state1.values, *state2 = block.state2.values;
#pragma omp simd
          for (std::int64_t i = 0; i < size; ++i) step(p[i], state1[i], state2[i], block.gradient[i]);
          if (old.used[0]) StoreFloats(tensors.parameter_type, p, operands.outputs[0], offset, size);
          if (old.used[1]) StoreFloats(DType::kF32, state1, operands.outputs[1], offset, size);
          if constexpr (kStates > 1) {
            if (old.used[2]) StoreFloats(DType::kF32, state2, operands.outputs[2], offset, size);
          }
          if (has_shadow) StoreFloats(shadow, p, operands.outputs[kShadow], offset, size);
        });
      },
      kNeedsNorms<Rule> ? sums : 0);
}

}  // namespace

void RegisterOptimizers(Registry& registry) {
  using namespace scalar;
  registry.Add("sgd", CreateOptimizer<Sgd>, {{0, 0}, {1, 1}});
  registry.Add("momentum", CreateOptimizer<Momentum>, {{0, 0}, {1, 1}});
  registry.Add("adam", CreateOptimizer<Adam>, {{0, 0}, {1, 1}, {2, 2}});
  registry.Add("adam_weight_decay", CreateOptimizer<AdamWeightDecay>, {{0, 0}, {1, 1}, {2, 2}});
  registry.Add("adamw", CreateOptimizer<AdamW>, {{0, 0}, {1, 1}, {2, 2}});
  registry.Add("lamb", CreateOptimizer<Lamb>, {{0, 0}, {1, 1}, {2, 2}});
}

}  // namespace mpc::cpu
