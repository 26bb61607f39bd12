// sgd, momentum, adam, adam_weight_decay, adamw, lamb; accumulate_gradient; batch_norm_running_update; increment,
// next_micro_step. Parameters and gradients of any floating storage type, everything else f32. All but the counters
// take many tensors in one launch.
#include <cstddef>
#include <memory>
#include <optional>

#include "kernels/cuda/multi_tensor.h"
#include "kernels/cuda/optimizer_update.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/optimizer_low_copy.h"
#include "kernels/scalar/optimizer_rules.h"
#include "kernels/scalar/running_statistics.h"

namespace mpc::cuda {
namespace {

template <typename T>
const T* InputAs(const KernelOperands& operands, std::size_t position) {
  return static_cast<const T*>(operands.inputs[position]);
}

/// The optional operand at `position`, the last one.
DevicePredicate PredicateAt(const KernelOperands& operands, std::size_t position, bool present) {
  return {present ? InputAs<std::uint8_t>(operands, position) : nullptr};
}

template <typename Rule>
constexpr bool kNeedsNorms = requires(const Rule& rule, const scalar::StepScalars& scalars) {
  rule.Direction(scalars);
};

/// The host's side of an optimizer.
template <typename Rule>
class Optimizer {
 public:
  static constexpr int kStates = Rule::kStates;
  static constexpr std::size_t kTensors = kStates + 2;
  static constexpr std::size_t kRuleOperands = kTensors + (Rule::kHasStep ? 2 : 1);
  using Segment = OptimizerSegment<kStates>;

  explicit Optimizer(const KernelSpec& spec)
      : rule_(spec),
        types_{spec.inputs[0].dtype, spec.inputs[kStates + 1].dtype, *LowCopyType(spec, kStates + 1)},
        outputs_(spec.outputs.size()),
        scaling_(spec, kRuleOperands),
        has_predicate_(spec.inputs.size() > scaling_.predicate) {}

  static bool Accepts(const KernelSpec& spec) {
    if (spec.inputs.size() < scalar::GradientScaling(spec, kRuleOperands).predicate) return false;
    for (std::size_t i = 0; i <= std::size_t{kStates}; ++i) {
      const DType wanted = i == 0 ? spec.inputs[0].dtype : DType::kF32;
      if (spec.inputs[i].dtype != wanted || (spec.uses(i) && spec.outputs[i].dtype != wanted)) return false;
    }
    return LowCopyType(spec, kStates + 1).has_value();
  }
  static SegmentPlan Plan(std::int64_t elements) {
    if constexpr (!kNeedsNorms<Rule>) return SegmentPlan::For(elements);
    SegmentPlan plan;
    plan.most_blocks = kNormBlocks;
    return plan;
  }
  static std::size_t WorkspaceBytes(unsigned blocks) {
    return kNeedsNorms<Rule> ? std::size_t{2} * blocks * sizeof(double) : 0;
  }

  Segment SegmentOf(const KernelOperands& operands, std::int64_t count) const {
    Segment segment{};
    for (std::size_t i = 0; i < kTensors; ++i) segment.inputs[i] = operands.inputs[i];
    for (std::size_t i = 0; i < outputs_; ++i) segment.outputs[i] = operands.outputs[i];
    segment.count = count;
    return segment;
  }

  absl::Status Start(LaunchQueue& queue, const SegmentTable<Segment>& table, unsigned blocks,
                     const KernelOperands& operands) const {
    const DeviceScalars scalars{InputAs<float>(operands, kTensors),
                                Rule::kHasStep ? InputAs<std::int32_t>(operands, kTensors + 1) : nullptr,
                                scaling_.unscales ? InputAs<float>(operands, scaling_.scale) : nullptr,
                                {scaling_.clips() ? operands.inputs[scaling_.norm] : nullptr, scaling_.norm_is_f64},
                                scaling_.max_norm,
                                PredicateAt(operands, scaling_.predicate, has_predicate_)};
    if constexpr (kNeedsNorms<Rule>) {
      auto* partials = static_cast<double*>(operands.workspace);
      const NormPartials<Rule> norms{rule_, types_, scalars, partials};
      if (absl::Status status = LaunchSegments(queue, table, blocks, norms); !status.ok()) return status;
      return LaunchSegments(queue, table, blocks, NormUpdate<Rule>{rule_, types_, scalars, partials});
    } else {
      return LaunchSegments(queue, table, blocks, ElementwiseUpdate<Rule>{rule_, types_, scalars});
    }
  }

 private:
  Rule rule_;
  OptimizerTypes types_;
  std::size_t outputs_;
  scalar::GradientScaling scaling_;
  bool has_predicate_;
};

struct AccumulateBody {
  using Segment = TensorSegment<2, 1>;
  scalar::AccumulateOp accumulate;
  DType gradient;
  const std::int32_t* micro_step;
  DevicePredicate predicate;

  __device__ __forceinline__ void operator()(const Segment& segment, const SegmentShare& share) const {
    using Action = scalar::AccumulateOp::Action;
    const Action action = predicate.Holds() ? accumulate.ActionIn(*micro_step) : Action::kKeep;
    if (action == Action::kKeep && segment.outputs[0] == segment.inputs[0]) return;
    ForEachInShare(share, segment.count, [&](auto width, std::int64_t index) {
      constexpr int kWidth = decltype(width)::value;
      float sum[kWidth], g[kWidth];
      LoadElements(Source{segment.inputs[0], DType::kF32}, index, sum);
      if (action != Action::kKeep) {
        LoadElements(Source{segment.inputs[1], gradient}, index, g);
        MPC_UNROLL
        for (int i = 0; i < kWidth; ++i) sum[i] = accumulate.Apply(action, sum[i], g[i]);
      }
      StoreElements(Sink{segment.outputs[0], DType::kF32}, index, sum);
    });
  }
};

class AccumulateGradient {
 public:
  static constexpr std::size_t kTensors = 2;
  using Segment = AccumulateBody::Segment;

  explicit AccumulateGradient(const KernelSpec& spec)
      : accumulate_(spec), gradient_(spec.inputs[1].dtype), has_predicate_(spec.inputs.size() > 3) {}

  static bool Accepts(const KernelSpec& spec) {
    return spec.inputs[0].dtype == DType::kF32 && spec.outputs[0].dtype == DType::kF32;
  }
  static SegmentPlan Plan(std::int64_t elements) { return SegmentPlan::For(elements); }
  static std::size_t WorkspaceBytes(unsigned) { return 0; }
  Segment SegmentOf(const KernelOperands& operands, std::int64_t count) const {
    return {{operands.inputs[0], operands.inputs[1]}, {operands.outputs[0]}, count};
  }
  absl::Status Start(LaunchQueue& queue, const SegmentTable<Segment>& table, unsigned blocks,
                     const KernelOperands& operands) const {
    return LaunchSegments(queue, table, blocks,
                          AccumulateBody{accumulate_, gradient_, InputAs<std::int32_t>(operands, 2),
                                         PredicateAt(operands, 3, has_predicate_)});
  }

 private:
  scalar::AccumulateOp accumulate_;
  DType gradient_;
  bool has_predicate_;
};

struct RunningUpdateBody {
  using Segment = TensorSegment<4, 2>;
  scalar::RunningStatistics statistics;
  std::int64_t batches;
  DevicePredicate predicate;

  __device__ __forceinline__ void operator()(const Segment& segment, const SegmentShare& share) const {
    const bool update = predicate.Holds();
    ForEachInShare(share, segment.count, [&](auto width, std::int64_t index) {
      constexpr int kWidth = decltype(width)::value;
      MPC_UNROLL
      for (int k = 0; k < 2; ++k) {
        if (segment.outputs[k] == nullptr || (!update && segment.outputs[k] == segment.inputs[k])) continue;
        float running[kWidth];
        LoadElements(Source{segment.inputs[k], DType::kF32}, index, running);
        const float* batch = static_cast<const float*>(segment.inputs[k + 2]) + index;
        for (std::int64_t j = 0; update && j < batches; ++j, batch += segment.count) {
          MPC_UNROLL
          for (int i = 0; i < kWidth; ++i) running[i] = statistics.Apply(k, running[i], batch[i]);
        }
        StoreElements(Sink{segment.outputs[k], DType::kF32}, index, running);
      }
    });
  }
};

class RunningUpdate {
 public:
  static constexpr std::size_t kTensors = 4;
  using Segment = RunningUpdateBody::Segment;

  explicit RunningUpdate(const KernelSpec& spec)
      : statistics_(spec),
        batches_(spec.attributes.Get(attribute::kBatches)),
        has_predicate_(spec.inputs.size() > kTensors) {}

  static bool Accepts(const KernelSpec&) { return true; }
  static SegmentPlan Plan(std::int64_t elements) { return SegmentPlan::For(elements); }
  static std::size_t WorkspaceBytes(unsigned) { return 0; }
  Segment SegmentOf(const KernelOperands& operands, std::int64_t count) const {
    const void* const* x = operands.inputs;
    return {{x[0], x[1], x[2], x[3]}, {operands.outputs[0], operands.outputs[1]}, count};
  }
  absl::Status Start(LaunchQueue& queue, const SegmentTable<Segment>& table, unsigned blocks,
                     const KernelOperands& operands) const {
    return LaunchSegments(queue, table, blocks,
                          RunningUpdateBody{statistics_, batches_, PredicateAt(operands, kTensors, has_predicate_)});
  }

 private:
  scalar::RunningStatistics statistics_;
  std::int64_t batches_;
  bool has_predicate_;
};

template <typename Update>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGroup(absl::Span<const KernelSpec> specs, const KernelContext&) {
  for (const KernelSpec& spec : specs) {
    if (!Update::Accepts(spec)) return UnsupportedTypes(spec);
  }
  return std::unique_ptr<Kernel>(new MultiTensorKernel<Update>(specs));
}

template <typename Update>
absl::StatusOr<std::unique_ptr<Kernel>> CreateOne(const KernelSpec& spec, const KernelContext& context) {
  return CreateGroup<Update>({&spec, 1}, context);
}

template <typename Update>
void Add(Registry& registry, std::string_view name, std::vector<AliasRule> aliases) {
  registry.Add(name, CreateOne<Update>, std::move(aliases));
  registry.AddGroup(name, CreateGroup<Update>);
}

/// y = x + by, modulo `modulus` where that is not 0; x where the predicate does not hold.
__global__ void CounterKernel(const std::int32_t* x, std::int32_t* y, std::int32_t by, std::int32_t modulus,
                              DevicePredicate predicate) {
  AwaitEarlierLaunches();
  std::int32_t value = *x;
  if (predicate.Holds()) value = modulus == 0 ? value + by : (value + by) % modulus;
  *y = value;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeCounter(std::int64_t by, std::int64_t modulus, bool has_predicate) {
  return MakeKernel([by = static_cast<std::int32_t>(by), modulus = static_cast<std::int32_t>(modulus), has_predicate](
                        const KernelOperands& operands, LaunchQueue& queue) {
    LaunchShape shape;
    shape.threads = 1;
    return launch(queue, &CounterKernel, shape, InputAs<std::int32_t>(operands, 0),
                  static_cast<std::int32_t*>(operands.outputs[0]), by, modulus,
                  PredicateAt(operands, 1, has_predicate));
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateIncrement(const KernelSpec& spec, const KernelContext&) {
  return MakeCounter(spec.attributes.Get(attribute::kBy), /*modulus=*/0, spec.inputs.size() > 1);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateNextMicroStep(const KernelSpec& spec, const KernelContext&) {
  return MakeCounter(/*by=*/1, spec.attributes.Get(attribute::kCount), spec.inputs.size() > 1);
}

}  // namespace

void RegisterOptimizers(Registry& registry) {
  Add<Optimizer<scalar::Sgd>>(registry, "sgd", {{0, 0}, {1, 1}});
  Add<Optimizer<scalar::Momentum>>(registry, "momentum", {{0, 0}, {1, 1}});
  Add<Optimizer<scalar::Adam>>(registry, "adam", {{0, 0}, {1, 1}, {2, 2}});
  Add<Optimizer<scalar::AdamWeightDecay>>(registry, "adam_weight_decay", {{0, 0}, {1, 1}, {2, 2}});
  Add<Optimizer<scalar::AdamW>>(registry, "adamw", {{0, 0}, {1, 1}, {2, 2}});
  Add<Optimizer<scalar::Lamb>>(registry, "lamb", {{0, 0}, {1, 1}, {2, 2}});
  Add<AccumulateGradient>(registry, "accumulate_gradient", {{0, 0}});
  Add<RunningUpdate>(registry, "batch_norm_running_update", {{0, 0}, {1, 1}});
  registry.Add("increment", CreateIncrement, {{0, 0}});
  registry.Add("next_micro_step", CreateNextMicroStep, {{0, 0}});
}

}  // namespace mpc::cuda
