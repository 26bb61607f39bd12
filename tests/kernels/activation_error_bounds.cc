#include "tests/kernels/activation_error_bounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "kernels/known_attributes.h"

namespace mpc::test {
namespace {

// 7 ulp of the normal distribution and 4 of its density, which is rounded twice more, see special_functions.h.
constexpr double kCdf = 14 * kU;
constexpr double kDensity = 8 * kU;

// A number of roundings of the first result itself.
const std::map<std::string, double>& RelativeErrors() {
  static const auto* const errors = new std::map<std::string, double>{
      {"square", kU},
      {"square_grad", kU},
      {"log1p", kFunction},
      {"log1p_grad", 3 * kU},
      // Evaluated in f64: one rounding, and 0.03 ulp of the reduced argument's series.
      {"sin", 2 * kU},
      {"cos", 2 * kU},
      {"sin_grad", 3 * kU},
      {"cos_grad", 3 * kU},
      {"silu", kFunction + 2 * kU},
      // x + 3 is exact where its digits cancel; 1 / 6 and two products round as well.
      {"hard_swish", 4 * kU},
      {"hard_swish_grad", 4 * kU},
      {"erf", kFunction},
      // The exponential, its correction, the constant and two products.
      {"erf_grad", kFunction},
      {"leaky_relu", kU},
      {"leaky_relu_grad", kU},
      {"prelu", kU},
      // Evaluated in f64.
      {"pow", 2 * kU},
      {"pow_grad", 2 * kU},
      {"reduce_max_grad", kU},
  };
  return *errors;
}

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

// 2 u of gelu's tanh form, limited to where the logistic function is 0 or 1.
double TwiceU(double x) {
  const double limited = std::clamp(x, -30.0, 30.0);
  return 1.5957691216057308 * (limited + 0.044715 * limited * limited * limited);
}

// 2 u is rounded eight times (two constants among them), and d log(logistic(v)) / dv = logistic(-v).
double GeluError(bool tanh_form, double x, double y) {
  if (!tanh_form) return (kCdf + 2 * kU) * std::abs(y) + kUnderflow * (1 + std::abs(x));
  const double v = TwiceU(x);
  const double relative = kFunction + 2 * kU + 8 * kU * std::abs(v) * Logistic(-v);
  return relative * std::abs(y) + kUnderflow * (1 + std::abs(x));
}

double GeluGradError(bool tanh_form, double dy, double x) {
  const double underflow = kUnderflow * (1 + std::abs(dy)) * (1 + std::abs(x));
  if (!tanh_form) {
    const double cdf = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double slope = std::abs(x) * 0.3989422804014327 * std::exp(-0.5 * x * x);
    return std::abs(dy) * (cdf * (kCdf + 3 * kU) + slope * (kDensity + 4 * kU)) + underflow;
  }
  const double limited = std::clamp(x, -30.0, 30.0);
  const double v = TwiceU(x);
  const double slope = 1.5957691216057308 * (1 + 3 * 0.044715 * limited * limited);
  const double magnitude = Logistic(v) * (1 + std::abs(limited) * Logistic(-v) * slope);
  // The logistic function may be 0 below the smallest normal number; 1 + |x| slope times that is lost.
  const double flushed = kUnderflow * std::abs(dy) * (1 + std::abs(limited) * slope);
  return std::abs(dy) * magnitude * (2 * kFunction + (8 * std::abs(v) + 10) * kU) + underflow + flushed;
}

// dy s (1 + x c) with s and c = 1 - s as accurate as sigmoid.
double SiluGradError(double dy, double x) {
  const double magnitude = Logistic(x) * (1 + std::abs(x) * Logistic(-x));
  return std::abs(dy) * magnitude * (2 * kFunction + 6 * kU) + kUnderflow * (1 + std::abs(dy)) * (1 + std::abs(x));
}

// The sum's terms are those of the reference on |dy|, all of one sign.
ElementErrors SumErrors(const OpCase& op_case, Tensors inputs, const Tensors& exact, std::size_t result) {
  for (double& value : inputs[0].values) value = std::abs(value);
  Tensors sums = exact;
  reference::Find(op_case.op)(op_case.attributes, inputs, absl::MakeSpan(sums));
  const double terms = static_cast<double>(inputs[0].values.size()) / static_cast<double>(sums[result].values.size());
  // gather_grad: all indices may name one row.
  const double most = op_case.op == "gather_grad" ? static_cast<double>(inputs[1].values.size()) : terms;
  ElementErrors error;
  for (double sum : sums[result].values) error.push_back((most + 2) * kU * std::abs(sum) + kUnderflow);
  return error;
}

ElementErrors Relative(const reference::Tensor& exact, double factor) {
  ElementErrors error;
  for (double value : exact.values) error.push_back(factor * std::abs(value) + kUnderflow);
  return error;
}

}  // namespace

double GeluOfProductError(bool tanh_form, double z, double y) {
  constexpr double kLibrary = 6 * kU;
  return std::max(GeluError(tanh_form, z, y), kLibrary * std::abs(z));
}

std::optional<Errors> ActivationErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const std::string& op = op_case.op;
  if (const auto relative = RelativeErrors().find(op); relative != RelativeErrors().end()) {
    return Errors{Relative(exact[0], relative->second)};
  }
  // One rounding a factor, and in the gradient a quotient and a product.
  const auto factors = [](const reference::Tensor& x, const reference::Tensor& y) {
    return static_cast<double>(x.values.size()) / static_cast<double>(y.values.size());
  };
  if (op == "reduce_prod") return Errors{Relative(exact[0], (factors(inputs[0], exact[0]) + 1) * kU)};
  if (op == "reduce_prod_grad") return Errors{Relative(exact[0], (factors(inputs[1], inputs[0]) + 3) * kU)};
  if (op == "prelu_grad") return Errors{Relative(exact[0], kU), SumErrors(op_case, inputs, exact, 1)};
  if (op == "gather_grad") return Errors{SumErrors(op_case, inputs, exact, 0)};
  const bool tanh_form = op_case.attributes.Get(attribute::kApproximate) == Approximation::kTanh;
  ElementErrors error(exact[0].values.size());
  for (std::size_t i = 0; i < error.size(); ++i) {
    const double first = inputs[0].values[i];
    if (op == "gelu") {
      error[i] = GeluError(tanh_form, first, exact[0].values[i]);
    } else if (op == "gelu_grad") {
      error[i] = GeluGradError(tanh_form, first, inputs[1].values[i]);
    } else if (op == "silu_grad") {
      error[i] = SiluGradError(first, inputs[1].values[i]);
    } else {
      return std::nullopt;
    }
  }
  return Errors{error};
}

}  // namespace mpc::test
