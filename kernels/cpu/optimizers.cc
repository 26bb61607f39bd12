// sgd, momentum, adam, adam_weight_decay, adamw, lamb. Parameters and gradients of any floating storage type, optimizer
// state f32, all of one shape. One pass over a block widens the gradient, divides it by its scale, clips it and applies
// the rule. It writes the parameter, its states and the low copy of an f32 parameter. Each element of
// every operand is read before its results are written, so results may lie in their state operands' storage. A false
// predicate copies the state, or does nothing where it is updated in place. Updates of several parameters share one
// parallel region.
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/state_update.h"
#include "kernels/cpu/sum_of_squares.h"
#include "kernels/cpu/tensor_blocks.h"
#include "kernels/optimizer_low_copy.h"
#include "kernels/scalar/optimizer_rules.h"

namespace mpc::cpu {
namespace {

template <typename Rule>
constexpr bool kNeedsNorms = requires(const Rule& rule, const scalar::StepScalars& scalars) {
  rule.Direction(scalars);
};

// The types and attributes that all instructions of one kernel agree in.
template <typename Rule>
struct UpdateLayout {
  static constexpr int kStates = Rule::kStates;
  static constexpr std::size_t kGradient = kStates + 1, kRate = kStates + 2, kLowCopy = kStates + 1;
  static constexpr std::size_t kRuleOperands = kStates + (Rule::kHasStep ? 4 : 3);

  DType parameter_type, gradient_type, low_copy_type;  // low_copy_type is f32 where there is none
  std::array<bool, kStates + 1> used;
  scalar::GradientScaling scaling;
  Predicate predicate;

  // Nothing where operands are missing, or an operand or a result has another type than it may.
  static std::optional<UpdateLayout> Create(const KernelSpec& spec) {
    const scalar::GradientScaling scaling(spec, kRuleOperands);
    if (spec.inputs.size() < scaling.predicate) return std::nullopt;
    UpdateLayout layout{spec.inputs[0].dtype,
                        spec.inputs[kGradient].dtype,
                        DType::kF32,
                        {},
                        scaling,
                        Predicate(spec, scaling.predicate)};
    for (std::size_t i = 0; i <= std::size_t{kStates}; ++i) {
      layout.used[i] = spec.uses(i);
      const DType wanted = i == 0 ? layout.parameter_type : DType::kF32;
      if (spec.inputs[i].dtype != wanted || (layout.used[i] && spec.outputs[i].dtype != wanted)) return std::nullopt;
    }
    const std::optional<DType> low_copy = LowCopyType(spec, kLowCopy);
    if (!low_copy) return std::nullopt;
    layout.low_copy_type = *low_copy;
    return layout;
  }

  bool has_low_copy() const { return low_copy_type != DType::kF32; }
  scalar::StepScalars Scalars(const KernelOperands& operands) const {
    return {ScalarOperand<float>(operands, kRate),
            Rule::kHasStep ? ScalarOperand<std::int32_t>(operands, kRate + 1) : 0};
  }
  scalar::GradientFactors Factors(const KernelOperands& operands) const {
    const float* scale = scaling.unscales ? static_cast<const float*>(operands.inputs[scaling.scale]) : nullptr;
    const void* norm = scaling.clips() ? operands.inputs[scaling.norm] : nullptr;
    return scalar::FactorsOf(scale, {norm, scaling.norm_is_f64}, scaling.max_norm);
  }
};

// The elements of one block of every operand, f32 where they lie or widened.
template <typename Rule>
struct BlockOperands {
  BlockBuffer parameter_buffer, gradient_buffer;
  const float *parameter, *state1, *state2, *gradient;

  BlockOperands(const UpdateLayout<Rule>& layout, const KernelOperands& operands, std::int64_t offset,
                std::int64_t size) {
    parameter = Source{layout.parameter_type, operands.inputs[0]}.Load(offset, size, parameter_buffer.values);
    state1 = static_cast<const float*>(operands.inputs[1]) + offset;
    state2 = Rule::kStates > 1 ? static_cast<const float*>(operands.inputs[2]) + offset : nullptr;
    const Source source{layout.gradient_type, operands.inputs[UpdateLayout<Rule>::kGradient]};
    gradient = source.Load(offset, size, gradient_buffer.values);
  }
};

template <typename Rule, typename Step>
void UpdateBlock(const UpdateLayout<Rule>& layout, const KernelOperands& operands, std::int64_t offset,
                 std::int64_t size, const Step step, const scalar::GradientFactors factors) {
  constexpr bool kTwoStates = Rule::kStates > 1;
  const BlockOperands<Rule> old(layout, operands, offset, size);
  BlockBuffer unused, narrow;
  const auto target = [&](std::size_t result) {
    return layout.used[result] ? static_cast<float*>(operands.outputs[result]) + offset : unused.values;
  };
  const Sink sink{layout.parameter_type, operands.outputs[0]};
  float* parameter = layout.used[0] ? sink.Target(offset, narrow.values) : narrow.values;
  float* state1 = target(1);
  float* state2 = kTwoStates ? target(Rule::kStates) : nullptr;
#pragma omp simd
  for (std::int64_t i = 0; i < size; ++i) {
    float p = old.parameter[i], first = old.state1[i], second = kTwoStates ? old.state2[i] : 0.0f;
    step(p, first, second, factors.Apply(old.gradient[i]));
    parameter[i] = p;
    state1[i] = first;
    if constexpr (kTwoStates) state2[i] = second;
  }
  if (layout.used[0]) sink.Commit(offset, size, parameter);
  if (layout.has_low_copy()) {
    StoreFloats(layout.low_copy_type, parameter, operands.outputs[layout.kLowCopy], offset, size);
  }
}

// Writes the results of a skipped update: the old state, and the old parameter rounded.
template <typename Rule>
void KeepBlock(const UpdateLayout<Rule>& layout, const KernelOperands& operands, std::int64_t offset,
               std::int64_t size) {
  for (std::size_t i = 0; i < layout.used.size(); ++i) {
    if (!layout.used[i] || operands.outputs[i] == operands.inputs[i]) continue;
    const std::size_t width = ElementSize(i == 0 ? layout.parameter_type : DType::kF32);
    std::memcpy(static_cast<char*>(operands.outputs[i]) + static_cast<std::size_t>(offset) * width,
                static_cast<const char*>(operands.inputs[i]) + static_cast<std::size_t>(offset) * width,
                static_cast<std::size_t>(size) * width);
  }
  if (!layout.has_low_copy()) return;
  const float* parameter = static_cast<const float*>(operands.inputs[0]) + offset;
  StoreFloats(layout.low_copy_type, parameter, operands.outputs[layout.kLowCopy], offset, size);
}

std::int64_t BlocksOf(std::int64_t count) { return (count + kBlock - 1) / kBlock; }

// The norms of a parameter and of its direction: sums of blocks in f64, added in the order of the blocks.
template <typename Rule>
std::array<double, 2> Norms(const Rule& rule, const UpdateLayout<Rule>& layout, const KernelOperands& operands,
                            std::int64_t count) {
  const auto direction = rule.Direction(layout.Scalars(operands));
  const scalar::GradientFactors factors = layout.Factors(operands);
  auto* sums = static_cast<double*>(operands.workspace);
  ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
    const BlockOperands<Rule> old(layout, operands, offset, size);
    BlockBuffer parameters, directions;
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) {
      const float p = old.parameter[i];
      float state1 = old.state1[i], state2 = old.state2[i];
      const float u = direction(p, state1, state2, factors.Apply(old.gradient[i]));
      parameters.values[i] = p;
      directions.values[i] = u;
    }
    sums[2 * (offset / kBlock)] = SumOfSquares(parameters.values, size);
    sums[2 * (offset / kBlock) + 1] = SumOfSquares(directions.values, size);
  });
  double parameter = 0, update = 0;
  for (std::int64_t block = 0; block < BlocksOf(count); ++block) {
    parameter += sums[2 * block];
    update += sums[2 * block + 1];
  }
  return {std::sqrt(parameter), std::sqrt(update)};
}

template <typename Rule>
auto BeginStep(const Rule& rule, const UpdateLayout<Rule>& layout, const KernelOperands& operands, std::int64_t count) {
  if constexpr (kNeedsNorms<Rule>) {
    const std::array<double, 2> norms = Norms(rule, layout, operands, count);
    return rule.Begin(layout.Scalars(operands), norms[0], norms[1]);
  } else {
    (void)count;
    return rule.Begin(layout.Scalars(operands));
  }
}

// One instruction, or several that agree in everything but their shapes. Their scalars may be different ones.
template <typename Rule>
class OptimizerKernel final : public Kernel {
 public:
  OptimizerKernel(absl::Span<const KernelSpec> specs, const UpdateLayout<Rule>& layout)
      : rule_(specs[0]),
        layout_(layout),
        inputs_(specs[0].inputs.size()),
        outputs_(specs[0].outputs.size()),
        blocks_(kBlock),
        members_(specs.size()) {
    for (std::size_t i = 0; i < specs.size(); ++i) {
      members_[i].count = specs[i].inputs[0].num_elements();
      blocks_.Add(members_[i].count);
    }
  }
  std::size_t workspace_bytes() const override {
    return kNeedsNorms<Rule> ? static_cast<std::size_t>(2 * blocks_.count()) * sizeof(double) : 0;
  }

  void Run(const KernelOperands& operands) override {
    for (std::size_t i = 0; i < members_.size(); ++i) Begin(members_[i], OperandsOf(operands, i));
    ParallelFor(blocks_.count(), blocks_.total(), [&](std::int64_t index) {
      const TensorBlocks::Block block = blocks_.BlockAt(index);
      const Member& member = members_[block.tensor];
      const KernelOperands own = OperandsOf(operands, block.tensor);
      if (member.step) {
        UpdateBlock(layout_, own, block.offset, block.size, *member.step, member.factors);
      } else {
        KeepBlock(layout_, own, block.offset, block.size);
      }
    });
  }

 private:
  using Step = decltype(BeginStep(std::declval<const Rule&>(), std::declval<const UpdateLayout<Rule>&>(),
                                  std::declval<const KernelOperands&>(), std::int64_t{}));
  // One update of the group, in one run. Without a step it is skipped.
  struct Member {
    std::int64_t count = 0;
    std::optional<Step> step;
    scalar::GradientFactors factors;
  };

  KernelOperands OperandsOf(const KernelOperands& operands, std::size_t instruction) const {
    return {operands.inputs + instruction * inputs_, operands.outputs + instruction * outputs_, operands.workspace};
  }
  void Begin(Member& member, const KernelOperands& operands) const {
    member.step.reset();
    if (!layout_.predicate.Holds(operands)) return;
    member.step.emplace(BeginStep(rule_, layout_, operands, member.count));
    member.factors = layout_.Factors(operands);
  }

  Rule rule_;
  UpdateLayout<Rule> layout_;
  std::size_t inputs_, outputs_;
  TensorBlocks blocks_;
  std::vector<Member> members_;
};

template <typename Rule>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGroup(absl::Span<const KernelSpec> specs) {
  std::optional<UpdateLayout<Rule>> layout;
  for (const KernelSpec& spec : specs) {
    layout = UpdateLayout<Rule>::Create(spec);
    if (!layout) return UnsupportedTypes(spec);
  }
  return std::unique_ptr<Kernel>(std::make_unique<OptimizerKernel<Rule>>(specs, *layout));
}

template <typename Rule>
absl::StatusOr<std::unique_ptr<Kernel>> CreateOne(const KernelSpec& spec) {
  return CreateGroup<Rule>({&spec, 1});
}

template <typename Rule>
void Add(Registry& registry, std::string_view name, std::vector<AliasRule> aliases) {
  registry.Add(name, CreateOne<Rule>, std::move(aliases));
  // Norms take a region of their own for each parameter, and a workspace.
  if constexpr (!kNeedsNorms<Rule>) registry.AddGroup(name, CreateGroup<Rule>);
}

}  // namespace

void RegisterOptimizers(Registry& registry) {
  Add<scalar::Sgd>(registry, "sgd", {{0, 0}, {1, 1}});
  Add<scalar::Momentum>(registry, "momentum", {{0, 0}, {1, 1}});
  Add<scalar::Adam>(registry, "adam", {{0, 0}, {1, 1}, {2, 2}});
  Add<scalar::AdamWeightDecay>(registry, "adam_weight_decay", {{0, 0}, {1, 1}, {2, 2}});
  Add<scalar::AdamW>(registry, "adamw", {{0, 0}, {1, 1}, {2, 2}});
  Add<scalar::Lamb>(registry, "lamb", {{0, 0}, {1, 1}, {2, 2}});
}

}  // namespace mpc::cpu
