// Activation functions and other element-wise functions with a derivative of their own, and prelu.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/known_attributes.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

constexpr double kPi = 3.14159265358979323846;

double Abs(double x) { return std::abs(x); }
double Floor(double x) { return std::floor(x); }
double Square(double x) { return x * x; }
double Log1p(double x) { return std::log1p(x); }
double Sin(double x) { return std::sin(x); }
double Cos(double x) { return std::cos(x); }
double Logistic(double x) { return 1 / (1 + std::exp(-x)); }
double Silu(double x) { return x * Logistic(x); }
double HardSwish(double x) { return x <= -3 ? 0 : (x >= 3 ? x : x * (x + 3) / 6); }

double AbsGrad(double dy, double x) { return x > 0 ? dy : (x < 0 ? -dy : 0); }
double SquareGrad(double dy, double x) { return 2 * dy * x; }
double Log1pGrad(double dy, double x) { return dy / (1 + x); }
double SinGrad(double dy, double x) { return dy * std::cos(x); }
double CosGrad(double dy, double x) { return -dy * std::sin(x); }
double SiluGrad(double dy, double x) {
  // Logistic(-x) is 1 - s without its cancellation.
  return dy * Logistic(x) * (1 + x * Logistic(-x));
}

double HardSwishGrad(double dy, double x) { return x <= -3 ? 0 : (x >= 3 ? dy : dy * (2 * x + 3) / 6); }

double Erf(double x) { return std::erf(x); }
double ErfGrad(double dy, double x) { return dy * 2 / std::sqrt(kPi) * std::exp(-x * x); }

// (1 + erf(x / sqrt 2)) / 2 without its cancellation.
double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double NormalDensity(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * kPi); }

// The tanh form through (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)). The cubic's coefficient is Hendrycks and Gimpel's.
constexpr double kCubic = 0.044715;
double TwiceU(double x) { return 2 * std::sqrt(2 / kPi) * (x + kCubic * x * x * x); }
double TwiceUSlope(double x) { return 2 * std::sqrt(2 / kPi) * (1 + 3 * kCubic * x * x); }

double GeluGrad(double dy, double x) { return dy * (NormalCdf(x) + x * NormalDensity(x)); }
double GeluTanhGrad(double dy, double x) {
  // Beyond 30 the derivative is 0 or 1; an infinite x would be multiplied by 0.
  const double limited = std::clamp(x, -30.0, 30.0);
  const double u = TwiceU(limited);
  return dy * Logistic(u) * (1 + limited * Logistic(-u) * TwiceUSlope(limited));
}

// Applies one of two forms, by the attribute `approximate`.
template <Function exact, Function tanh>
void ByForm(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  (attributes.Get(attribute::kApproximate) == Approximation::kTanh ? tanh : exact)(attributes, inputs, outputs);
}

double Power(double x, double exponent) {
  // std::pow(-infinity, 0.5) is infinite; here it is NaN, as for every negative number.
  if (x < 0 && std::floor(exponent) != exponent) return std::numeric_limits<double>::quiet_NaN();
  return std::pow(x, exponent);
}

void Pow(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const double exponent = FloatAttribute(attributes, "exponent");
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = Power(inputs[0].values[i], exponent);
  }
}

void PowGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const double exponent = FloatAttribute(attributes, "exponent");
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] =
        exponent == 0 ? 0 : inputs[0].values[i] * exponent * Power(inputs[1].values[i], exponent - 1);
  }
}

// x or dy is scaled where x is not above 0.
void LeakyRelu(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const double alpha = FloatAttribute(attributes, attribute::kSlope);
  const std::vector<double>& x = inputs.back().values;
  for (std::size_t i = 0; i < x.size(); ++i) {
    outputs[0].values[i] = (x[i] > 0 ? 1 : alpha) * inputs[0].values[i];
  }
}

void Clamp(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const double minimum = FloatAttribute(attributes, "minimum");
  const double maximum = FloatAttribute(attributes, "maximum");
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    const double x = inputs[0].values[i];
    outputs[0].values[i] = x < minimum ? minimum : (x > maximum ? maximum : x);
  }
}

void ClampGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const double minimum = FloatAttribute(attributes, "minimum");
  const double maximum = FloatAttribute(attributes, "maximum");
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    const double x = inputs[1].values[i];
    outputs[0].values[i] = x >= minimum && x <= maximum ? inputs[0].values[i] : 0;
  }
}

// Which slope each element of x takes.
std::vector<std::size_t> SlopeIndices(const Attributes& attributes, const Shape& x, const Shape& alpha) {
  Shape aligned = alpha;
  const bool channels_last = x.size() == 4 && attributes.Get(attribute::kDataFormat) == DataFormat::kNHWC;
  if (NumElements(alpha) > 1 && !channels_last) aligned.resize(x.size() - 1, 1);
  return BroadcastIndices(NumElements(alpha) == 1 ? Shape{} : aligned, x);
}

void Prelu(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& x = inputs[0].values;
  const std::vector<std::size_t> slope = SlopeIndices(attributes, inputs[0].spec.shape, inputs[1].spec.shape);
  for (std::size_t i = 0; i < x.size(); ++i) {
    outputs[0].values[i] = x[i] > 0 ? x[i] : inputs[1].values[slope[i]] * x[i];
  }
}

void PreluGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& x = inputs[1].values;
  const std::vector<std::size_t> slope = SlopeIndices(attributes, inputs[1].spec.shape, inputs[2].spec.shape);
  std::fill(outputs[1].values.begin(), outputs[1].values.end(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    outputs[0].values[i] = x[i] > 0 ? dy[i] : inputs[2].values[slope[i]] * dy[i];
    if (!(x[i] > 0)) outputs[1].values[slope[i]] += dy[i] * x[i];
  }
}

constexpr NamedFunction kTable[] = {
    {"abs", Unary<Abs>},
    {"floor", Unary<Floor>},
    {"square", Unary<Square>},
    {"log1p", Unary<Log1p>},
    {"sin", Unary<Sin>},
    {"cos", Unary<Cos>},
    {"silu", Unary<Silu>},
    {"hard_swish", Unary<HardSwish>},
    {"erf", Unary<Erf>},
    {"abs_grad", Binary<AbsGrad>},
    {"square_grad", Binary<SquareGrad>},
    {"log1p_grad", Binary<Log1pGrad>},
    {"sin_grad", Binary<SinGrad>},
    {"cos_grad", Binary<CosGrad>},
    {"silu_grad", Binary<SiluGrad>},
    {"hard_swish_grad", Binary<HardSwishGrad>},
    {"erf_grad", Binary<ErfGrad>},
    {"gelu", ByForm<Unary<Gelu>, Unary<GeluTanh>>},
    {"gelu_grad", ByForm<Binary<GeluGrad>, Binary<GeluTanhGrad>>},
    {"leaky_relu", LeakyRelu},
    {"leaky_relu_grad", LeakyRelu},
    {"prelu", Prelu},
    {"prelu_grad", PreluGrad},
    {"pow", Pow},
    {"pow_grad", PowGrad},
    {"clamp", Clamp},
    {"clamp_grad", ClampGrad},
};

}  // namespace

double Gelu(double x) { return x * NormalCdf(x); }
double GeluTanh(double x) { return x * Logistic(TwiceU(x)); }

FunctionTable ActivationFunctions() { return kTable; }

}  // namespace mpc::reference
