// sgd, momentum, adam, adam_weight_decay and increment. Parameters and gradients of any floating storage type,
// optimizer state f32, all of one shape. Each block of every operand is read before its results are written, so results
// may lie in their state operands' storage. A false predicate copies the state, or does nothing where it is updated in
// place.
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

float FloatAttribute(const KernelSpec& spec, const char* name, float fallback) {
  return static_cast<float>(spec.attributes.GetDouble(name, static_cast<double>(fallback)));
}

// 1 - value, rounded once.
float Complement(float value) { return static_cast<float>(1.0 - static_cast<double>(value)); }

template <typename T>
T ScalarOperand(const KernelOperands& operands, std::size_t position) {
  return *static_cast<const T*>(operands.inputs[position]);
}

// The gradient with the static loss scale divided out and the coupled weight decay added.
struct Decay {
  float loss_scale, weight_decay;
  explicit Decay(const KernelSpec& spec)
      : loss_scale(FloatAttribute(spec, "loss_scale", 1.0f)), weight_decay(FloatAttribute(spec, "weight_decay", 0)) {}
  float Apply(float gradient, float parameter) const { return gradient / loss_scale + weight_decay * parameter; }
};

// An update rule has
//   kStates     f32 states after the parameter (operands 1 .. kStates; the gradient follows them)
//   kPredicate  position of the optional predicate
//   Begin(operands) -> a functor step(parameter&, state1&, state2&, gradient) for one element
struct Sgd {
  static constexpr std::size_t kStates = 1, kPredicate = 5;
  Decay decay;
  float momentum, gradient_weight;
  bool nesterov;
  explicit Sgd(const KernelSpec& spec)
      : decay(spec),
        momentum(FloatAttribute(spec, "momentum", 0)),
        gradient_weight(Complement(FloatAttribute(spec, "dampening", 0))),
        nesterov(spec.attributes.GetBool("nesterov")) {}

  auto Begin(const KernelOperands& operands) const {
    const bool first = ScalarOperand<std::int32_t>(operands, 4) == 0;
    return [*this, first, rate = ScalarOperand<float>(operands, 3)](float& p, float& v, float&, float gradient) {
      const float g = decay.Apply(gradient, p);
      const float moved = first ? g : momentum * v + gradient_weight * g;
      const float velocity = momentum != 0.0f ? moved : v;
      const float with_momentum = nesterov ? g + momentum * velocity : velocity;
      p -= rate * (momentum != 0.0f ? with_momentum : g);
      v = velocity;
    };
  }
};

struct Momentum {
  static constexpr std::size_t kStates = 1, kPredicate = 4;
  Decay decay;
  float momentum;
  bool nesterov;
  explicit Momentum(const KernelSpec& spec)
      : decay(spec), momentum(FloatAttribute(spec, "momentum", 0.9f)), nesterov(spec.attributes.GetBool("nesterov")) {}

  auto Begin(const KernelOperands& operands) const {
    return [*this, rate = ScalarOperand<float>(operands, 3)](float& p, float& v, float&, float gradient) {
      const float g = decay.Apply(gradient, p);
      v = momentum * v + g;
      p -= rate * (nesterov ? g + momentum * v : v);
    };
  }
};

struct Moments {
  float beta1, beta2, epsilon;
  Moments(const KernelSpec& spec, float default_epsilon)
      : beta1(FloatAttribute(spec, "beta1", 0.9f)),
        beta2(FloatAttribute(spec, "beta2", 0.999f)),
        epsilon(FloatAttribute(spec, "epsilon", default_epsilon)) {}

  // Moves the moments and returns m / (sqrt(v) + epsilon).
  float Step(float& m, float& v, float g, float weight1, float weight2) const {
    m = beta1 * m + weight1 * g;
    v = beta2 * v + weight2 * g * g;
    return m / (std::sqrt(v) + epsilon);
  }
};

struct Adam {
  static constexpr std::size_t kStates = 2, kPredicate = 6;
  Decay decay;
  Moments moments;
  explicit Adam(const KernelSpec& spec) : decay(spec), moments(spec, 1e-8f) {}

  auto Begin(const KernelOperands& operands) const {
    const double t = static_cast<double>(ScalarOperand<std::int32_t>(operands, 5)) + 1;
    const double correction = std::sqrt(1 - std::pow(static_cast<double>(moments.beta2), t)) /
                              (1 - std::pow(static_cast<double>(moments.beta1), t));
    const float rate = static_cast<float>(static_cast<double>(ScalarOperand<float>(operands, 4)) * correction);
    return [*this, rate, weight1 = Complement(moments.beta1), weight2 = Complement(moments.beta2)](
               float& p, float& m, float& v, float gradient) {
      p -= rate * moments.Step(m, v, decay.Apply(gradient, p), weight1, weight2);
    };
  }
};

struct AdamWeightDecay {
  static constexpr std::size_t kStates = 2, kPredicate = 5;
  Moments moments;
  float weight_decay;
  explicit AdamWeightDecay(const KernelSpec& spec)
      : moments(spec, 1e-6f), weight_decay(FloatAttribute(spec, "weight_decay", 0)) {}

  auto Begin(const KernelOperands& operands) const {
    return [*this, rate = ScalarOperand<float>(operands, 4), weight1 = Complement(moments.beta1),
            weight2 = Complement(moments.beta2)](float& p, float& m, float& v, float gradient) {
      p -= rate * (moments.Step(m, v, gradient, weight1, weight2) + weight_decay * p);
    };
  }
};

bool PredicateHolds(const KernelOperands& operands, bool has_predicate, std::size_t position) {
  return !has_predicate || ScalarOperand<std::uint8_t>(operands, position) != 0;
}

template <typename Rule>
absl::StatusOr<std::unique_ptr<Kernel>> CreateOptimizer(const KernelSpec& spec) {
  constexpr std::size_t kStates = Rule::kStates;
  std::array<std::size_t, kStates + 1> bytes;
  std::array<bool, kStates + 1> used;
  for (std::size_t i = 0; i <= kStates; ++i) {
    bytes[i] = spec.outputs[i].bytes();
    used[i] = spec.uses(i);
    const DType wanted = i == 0 ? spec.inputs[0].dtype : DType::kF32;
    if (spec.outputs[i].dtype != wanted || spec.inputs[i].dtype != wanted) return UnsupportedTypes(spec);
  }
  return MakeKernel([rule = Rule(spec), bytes, used, has_predicate = spec.inputs.size() > Rule::kPredicate,
                     parameter_type = spec.inputs[0].dtype, gradient_type = spec.inputs[kStates + 1].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    if (!PredicateHolds(operands, has_predicate, Rule::kPredicate)) {
      for (std::size_t i = 0; i <= kStates; ++i) {
        if (used[i] && operands.outputs[i] != operands.inputs[i]) {
          std::memcpy(operands.outputs[i], operands.inputs[i], bytes[i]);
        }
      }
      return;
    }
    const auto step = rule.Begin(operands);
    const Source gradient{gradient_type, operands.inputs[kStates + 1]};
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer gradient_buffer, parameter, state1, state2;
      LoadFloats(parameter_type, operands.inputs[0], offset, size, parameter.values);
      LoadFloats(DType::kF32, operands.inputs[1], offset, size, state1.values);
      if constexpr (kStates > 1) LoadFloats(DType::kF32, operands.inputs[2], offset, size, state2.values);
      const float* g = gradient.Load(offset, size, gradient_buffer.values);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        step(parameter.values[i], state1.values[i], state2.values[i], g[i]);
      }
      if (used[0]) StoreFloats(parameter_type, parameter.values, operands.outputs[0], offset, size);
      if (used[1]) StoreFloats(DType::kF32, state1.values, operands.outputs[1], offset, size);
      if constexpr (kStates > 1) {
        if (used[2]) StoreFloats(DType::kF32, state2.values, operands.outputs[2], offset, size);
      }
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateIncrement(const KernelSpec& spec) {
  return MakeKernel(
      [has_predicate = spec.inputs.size() > 1, count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
        const std::int32_t* counter = static_cast<const std::int32_t*>(operands.inputs[0]);
        std::int32_t* updated = static_cast<std::int32_t*>(operands.outputs[0]);
        const std::int32_t step = PredicateHolds(operands, has_predicate, 1) ? 1 : 0;
        for (std::int64_t i = 0; i < count; ++i) updated[i] = counter[i] + step;
      });
}

}  // namespace

void RegisterOptimizers(Registry& registry) {
  registry.Add("sgd", CreateOptimizer<Sgd>, {{0, 0}, {1, 1}});
  registry.Add("momentum", CreateOptimizer<Momentum>, {{0, 0}, {1, 1}});
  registry.Add("adam", CreateOptimizer<Adam>, {{0, 0}, {1, 1}, {2, 2}});
  registry.Add("adam_weight_decay", CreateOptimizer<AdamWeightDecay>, {{0, 0}, {1, 1}, {2, 2}});
  registry.Add("increment", CreateIncrement, {{0, 0}});
}

}  // namespace mpc::cpu
