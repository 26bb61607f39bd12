#include "tests/kernels/optimizer_bounds.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::test {
namespace {

using reference::FloatAttribute;

// The magnitude of a gradient that the rule sees. Scale and norm come last but for the predicate, of type bool.
double ScaledMagnitude(const OpCase& op_case, const Tensors& inputs, double gradient) {
  std::size_t end = inputs.size();
  if (inputs.back().spec.dtype == DType::kBool) --end;
  if (const double max_norm = FloatAttribute(op_case.attributes, "max_norm"); max_norm > 0) {
    gradient *= std::min(1.0, max_norm / inputs[--end].values[0]);
  }
  if (op_case.attributes.GetBool("unscale")) gradient /= inputs[--end].values[0];
  return std::abs(gradient) / FloatAttribute(op_case.attributes, attribute::kLossScale);
}

Errors AdamErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const bool coupled = op_case.op == "adam";
  const Attributes& attributes = op_case.attributes;
  const double beta1 = FloatAttribute(attributes, attribute::kBeta1);
  const double beta2 = FloatAttribute(attributes, attribute::kBeta2);
  const double decay = op_case.op == "adamw" ? FloatAttribute(attributes, attribute::kAdamWDecay)
                                             : FloatAttribute(attributes, "weight_decay");
  const double learning_rate = std::abs(inputs[4].values[0]);
  const double scaling = ScalingRoundings(op_case);
  ElementErrors parameter_error, moment1_error, moment2_error;
  for (std::size_t i = 0; i < exact[0].values.size(); ++i) {
    const double parameter = std::abs(inputs[0].values[i]);
    const double gradient = ScaledMagnitude(op_case, inputs, inputs[3].values[i]) + (coupled ? decay * parameter : 0);
    const double moment1 = (7 + scaling) * kU * (beta1 * std::abs(inputs[1].values[i]) + (1 - beta1) * gradient);
    const double moment2 = (10 + 2 * scaling) * kU * (beta2 * inputs[2].values[i] + (1 - beta2) * gradient * gradient);
    // What the moments' errors do to lr * m / (sqrt(v) + eps). The corrections 1 - beta^t are formed in f64: in f32
    // they would lose their digits to cancellation.
    const double update = std::abs(exact[0].values[i] - inputs[0].values[i]) + learning_rate * decay * parameter;
    const double root = std::sqrt(exact[2].values[i]);
    const double correction = std::abs(exact[1].values[i]) > 0 ? update / std::abs(exact[1].values[i]) : 0;
    parameter_error.push_back(update * (0.5 * moment2 / (root * root) + 12 * kU) + correction * moment1 +
                              2 * kU * (parameter + update) + kUnderflow);
    moment1_error.push_back(moment1 + kUnderflow);
    moment2_error.push_back(moment2 + kUnderflow);
  }
  return {parameter_error, moment1_error, moment2_error};
}

// u of f64.
constexpr double kU64 = 0x1p-53;

// A norm of n values in f64: its sum of squares has terms of one sign, and the root halves a relative error.
double NormError(std::size_t count) { return (static_cast<double>(count) / 2 + 2) * kU64; }

double NormOf(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value * value;
  return std::sqrt(sum);
}

Errors LambErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const Attributes& attributes = op_case.attributes;
  const double beta1 = FloatAttribute(attributes, attribute::kBeta1);
  const double beta2 = FloatAttribute(attributes, attribute::kBeta2);
  const double epsilon = FloatAttribute(attributes, attribute::kLambEpsilon);
  const double decay = FloatAttribute(attributes, "weight_decay");
  const double step = inputs[5].values[0] + 1;
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = 1 - std::pow(beta2, step);
  const double scaling = ScalingRoundings(op_case);
  const std::vector<double>& parameter = inputs[0].values;
  const std::size_t count = parameter.size();
  ElementErrors parameter_error(count), moment1_error(count), moment2_error(count), direction_error(count);
  // The direction, and the magnitudes of its two terms: they may cancel.
  std::vector<double> direction(count), magnitude(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double gradient = ScaledMagnitude(op_case, inputs, inputs[3].values[i]);
    moment1_error[i] =
        (7 + scaling) * kU * (beta1 * std::abs(inputs[1].values[i]) + (1 - beta1) * gradient) + kUnderflow;
    moment2_error[i] =
        (10 + 2 * scaling) * kU * (beta2 * inputs[2].values[i] + (1 - beta2) * gradient * gradient) + kUnderflow;
    const double divisor = correction1 * (std::sqrt(exact[2].values[i] / correction2) + epsilon);
    const double adaptive = exact[1].values[i] / divisor;
    direction[i] = adaptive + decay * parameter[i];
    magnitude[i] = std::abs(adaptive) + decay * std::abs(parameter[i]);
    direction_error[i] = std::abs(adaptive) * 0.5 * moment2_error[i] / exact[2].values[i] + moment1_error[i] / divisor +
                         8 * kU * magnitude[i];
  }
  const double parameter_norm = NormOf(parameter);
  const double direction_norm = NormOf(direction);
  const bool comparable = parameter_norm != 0 && direction_norm != 0;
  const double ratio = comparable ? std::min(parameter_norm / direction_norm, 10.0) : 1.0;
  // The quotient is rounded to f32.
  const double ratio_error = comparable ? 2 * NormError(count) + NormOf(direction_error) / direction_norm + kU : 0;
  const double rate = std::abs(inputs[4].values[0]) * ratio;
  for (std::size_t i = 0; i < count; ++i) {
    parameter_error[i] = rate * (direction_error[i] + magnitude[i] * (ratio_error + 3 * kU)) +
                         2 * kU * (std::abs(parameter[i]) + rate * magnitude[i]) + kUnderflow;
  }
  return {parameter_error, moment1_error, moment2_error};
}

Errors GlobalNormErrors(const Tensors& inputs, const Tensors& exact) {
  std::size_t count = 0;
  for (const reference::Tensor& gradient : inputs) count += gradient.values.size();
  return {ElementErrors{NormError(count) * std::abs(exact[0].values[0])}};
}

// Squares of f32 are exact in f64; terms of one sign are added in some order.
Errors SumOfSquaresErrors(const Tensors& inputs, const Tensors& exact) {
  const auto count = static_cast<double>(inputs[0].values.size());
  return {ElementErrors{count * kU64 * exact[0].values[0]}};
}

// The shadow is the parameter, rounded once more.
Errors WithLowCopy(const OpCase& op_case, Errors errors) {
  if (op_case.attributes.Get(attribute::kLowCopy) != LowCopy::kNone) errors.push_back(errors.front());
  return errors;
}

}  // namespace

double ScalingRoundings(const OpCase& op_case) { return op_case.attributes.GetDouble("max_norm") > 0 ? 4 : 0; }

std::optional<Errors> OptimizerErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const std::string& op = op_case.op;
  if (op == "adam" || op == "adam_weight_decay" || op == "adamw") {
    return WithLowCopy(op_case, AdamErrors(op_case, inputs, exact));
  }
  if (op == "lamb") return WithLowCopy(op_case, LambErrors(op_case, inputs, exact));
  if (op == "global_norm") return GlobalNormErrors(inputs, exact);
  if (op == "sum_of_squares") return SumOfSquaresErrors(inputs, exact);
  return std::nullopt;
}

}  // namespace mpc::test
