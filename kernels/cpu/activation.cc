// Element-wise functions and their derivatives, for any floating storage type: abs, floor, square, log1p, sin, cos,
// silu, gelu, leaky_relu, pow, clamp, and the gradient operations (dy, x).
#include <cmath>

#include "kernels/cpu/elementwise_loops.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/special_functions.h"

namespace mpc::cpu {
namespace {

struct Abs {
  static float Apply(float x) { return std::fabs(x); }
};
struct AbsGrad {
  static float Apply(float dy, float x) { return x > 0.0f ? dy : (x < 0.0f ? -dy : 0.0f); }
};

struct Floor {
  static float Apply(float x) { return std::floor(x); }
};

struct Square {
  static float Apply(float x) { return x * x; }
};
struct SquareGrad {
  static float Apply(float dy, float x) { return 2.0f * dy * x; }
};

struct Log1pOp {
  static float Apply(float x) { return Log1p(x); }
};
struct Log1pGrad {
  static float Apply(float dy, float x) { return dy / (1.0f + x); }
};

struct Sin {
  static constexpr float kFastLimit = kTrigonometricLimit;
  static float Apply(float x) { return SineOrCosine<false>(x); }
  static float Slow(float x) { return std::sin(x); }
};
struct SinGrad {
  static constexpr float kFastLimit = kTrigonometricLimit;
  static float Apply(float dy, float x) { return dy * SineOrCosine<true>(x); }
  static float Slow(float dy, float x) { return dy * std::cos(x); }
};
struct Cos {
  static constexpr float kFastLimit = kTrigonometricLimit;
  static float Apply(float x) { return SineOrCosine<true>(x); }
  static float Slow(float x) { return std::cos(x); }
};
struct CosGrad {
  static constexpr float kFastLimit = kTrigonometricLimit;
  static float Apply(float dy, float x) { return -dy * SineOrCosine<false>(x); }
  static float Slow(float dy, float x) { return -dy * std::sin(x); }
};

struct Silu {
  static float Apply(float x) { return x * Sigmoid(x); }
};
struct SiluGrad {
  // 1 - s is the sigmoid of -x, which keeps its digits where s rounds to 1.
  static float Apply(float dy, float x) { return dy * (Sigmoid(x) * (1.0f + x * Sigmoid(-x))); }
};

struct Gelu {
  static float Apply(float x) { return x * NormalDistribution::At(x).cdf; }
};
struct GeluGrad {
  static float Apply(float dy, float x) {
    const NormalDistribution normal = NormalDistribution::At(x);
    return dy * (normal.cdf + x * normal.density);
  }
};

// (1 + tanh(u)) / 2 = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float kTwiceGeluSlope = 1.5957691216f;
constexpr float kGeluCubic = 0.044715f;

struct GeluTanh {
  static float Apply(float x) { return x * Sigmoid(kTwiceGeluSlope * (x + kGeluCubic * x * x * x)); }
};
struct GeluTanhGrad {
  static float Apply(float dy, float x) {
    // Beyond 30 the sigmoid is 0 or 1 and its slope 0; unlimited, the cube would overflow into 0 * infinity.
    float limited = x > 30.0f ? 30.0f : x;
    limited = limited < -30.0f ? -30.0f : limited;
    const float square = limited * limited;
    const float twice_u = kTwiceGeluSlope * (limited + kGeluCubic * square * limited);
    const float slope = kTwiceGeluSlope * (1.0f + 3.0f * kGeluCubic * square);
    return dy * (Sigmoid(twice_u) * (1.0f + limited * Sigmoid(-twice_u) * slope));
  }
};

struct LeakyRelu {
  explicit LeakyRelu(const Attributes& attributes) : alpha(static_cast<float>(attributes.GetDouble("alpha", 0.2f))) {}
  float Apply(float x) const { return x > 0.0f ? x : alpha * x; }
  float Apply(float dy, float x) const { return x > 0.0f ? dy : alpha * dy; }
  float alpha;
};

struct Pow {
  explicit Pow(const Attributes& attributes) : power(static_cast<float>(attributes.GetDouble("exponent"))) {}
  float Apply(float x) const { return static_cast<float>(power(x)); }
  Power power;
};
struct PowGrad {
  explicit PowGrad(const Attributes& attributes)
      : exponent(static_cast<float>(attributes.GetDouble("exponent"))), power(exponent - 1) {}
  float Apply(float dy, float x) const {
    return exponent == 0 ? 0.0f : static_cast<float>(static_cast<double>(dy) * exponent * power(x));
  }
  double exponent;
  Power power;
};

struct Clamp {
  explicit Clamp(const Attributes& attributes)
      : minimum(static_cast<float>(attributes.GetDouble("minimum"))),
        maximum(static_cast<float>(attributes.GetDouble("maximum"))) {}
  // NaN passes both comparisons.
  float Apply(float x) const {
    const float above = x < minimum ? minimum : x;
    return above > maximum ? maximum : above;
  }
  float Apply(float dy, float x) const { return x >= minimum && x <= maximum ? dy : 0.0f; }
  float minimum, maximum;
};

bool IsTanhForm(const KernelSpec& spec) { return spec.attributes.GetString("approximate", "none") == "tanh"; }

absl::StatusOr<std::unique_ptr<Kernel>> CreateGelu(const KernelSpec& spec) {
  return IsTanhForm(spec) ? CreateUnary<GeluTanh>(spec) : CreateUnary<Gelu>(spec);
}
absl::StatusOr<std::unique_ptr<Kernel>> CreateGeluGrad(const KernelSpec& spec) {
  return IsTanhForm(spec) ? CreateUnaryGrad<GeluTanhGrad>(spec) : CreateUnaryGrad<GeluGrad>(spec);
}

struct Entry {
  const char* name;
  Factory factory;
};
constexpr Entry kForward[] = {
    {"abs", CreateUnary<Abs>},       {"floor", CreateUnary<Floor>}, {"square", CreateUnary<Square>},
    {"log1p", CreateUnary<Log1pOp>}, {"sin", CreateUnary<Sin>},     {"cos", CreateUnary<Cos>},
    {"silu", CreateUnary<Silu>},     {"gelu", CreateGelu},          {"leaky_relu", CreateUnary<LeakyRelu>},
    {"pow", CreateUnary<Pow>},       {"clamp", CreateUnary<Clamp>},
};
constexpr Entry kGradients[] = {
    {"abs_grad", CreateUnaryGrad<AbsGrad>},
    {"square_grad", CreateUnaryGrad<SquareGrad>},
    {"log1p_grad", CreateUnaryGrad<Log1pGrad>},
    {"sin_grad", CreateUnaryGrad<SinGrad>},
    {"cos_grad", CreateUnaryGrad<CosGrad>},
    {"silu_grad", CreateUnaryGrad<SiluGrad>},
    {"gelu_grad", CreateGeluGrad},
    {"leaky_relu_grad", CreateUnaryGrad<LeakyRelu>},
    {"pow_grad", CreateUnaryGrad<PowGrad>},
    {"clamp_grad", CreateUnaryGrad<Clamp>},
};

}  // namespace

void RegisterActivation(Registry& registry) {
  for (const Entry& entry : kForward) registry.Add(entry.name, entry.factory, {{0, 0}});
  for (const Entry& entry : kGradients) registry.Add(entry.name, entry.factory, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cpu
