// Notation: u = 2^-24 is the unit roundoff of f32: fl(a op b) = (a op b)(1 + d), |d| <= u (Higham, "Accuracy and
// Stability of Numerical Algorithms", chapters 2 to 4). A sum of n terms in any order is off by at most (n - 1) u times
// the sum of the terms' magnitudes; the few further roundings of a formula are counted beside its bound. Second-order
// terms are covered by counting one rounding more than there are.
#include "tests/kernels/error_bounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "kernels/reference/functions.h"
#include "kernels/reference/image.h"
#include "tests/kernels/activation_error_bounds.h"
#include "tests/kernels/batch_norm_error_bounds.h"
#include "tests/kernels/optimizer_bounds.h"
#include "tests/kernels/sequence_error_bounds.h"

namespace mpc::test {
namespace {

using op_cases::OpCase;
using reference::FloatAttribute;
using reference::VisitChannel;
using Tensors = std::vector<reference::Tensor>;
using Errors = std::vector<std::optional<ElementErrors>>;

constexpr double kU = 0x1p-24;
// Kernels may flush f32 values below the smallest normal number.
constexpr double kUnderflow = 0x1p-126;
// Documented accuracy of the vector exp, log, tanh and sigmoid, in units of 2u (one f32 ulp is at most 2u).
constexpr double kFunctionUlps = 4;
constexpr double kFunction = 2 * kFunctionUlps * kU;

const std::set<std::string>& ExactOps() {
  static const auto* const ops = new std::set<std::string>{
      "relu",        "neg",          "stop_gradient", "relu_grad",  "maximum",         "maximum_grad",
      "equal",       "merge_checks", "all_of",        "any_of",     "next_micro_step", "tensor_statistics",
      "select",      "cast",         "reshape",       "argmax",     "transpose",       "random",
      "increment",   "unscale",      "broadcast_to",  "max_pool2d", "all_finite",      "update_loss_scale",
      "check_finite"};
  return *ops;
}

// Operations on single elements whose error is a number of roundings of the result itself.
const std::map<std::string, double>& RelativeErrors() {
  static const auto* const errors = new std::map<std::string, double>{
      {"add", kU},
      {"sub", kU},
      {"mul", kU},
      {"div", kU},
      {"sqrt", kU},
      {"scale_loss", kU},
      // norm + 1e-6, the quotient and the product.
      {"clip_by_norm", 4 * kU},
      {"add_scalar", kU},
      {"mul_scalar", kU},
      {"dropout", kU},
      {"exp", kFunction},
      {"log", kFunction},
      {"tanh", kFunction},
      {"sigmoid", kFunction},
      // (1 - y) is exact above 1/2 and one rounding below; two products.
      {"sigmoid_grad", 4 * kU},
      {"sqrt_grad", 3 * kU},
      {"div_grad", 3 * kU},
      // 2 * dloss / n * (p - t): the difference is one relative rounding of the exact difference.
      {"mse_grad", 5 * kU},
  };
  return *errors;
}

// Operations that are sums of products of operands with known coefficients: run on magnitudes, the reference gives the
// sum of the terms' magnitudes. Returns how many terms meet in one result element, 0 for other operations.
double TermsOf(const OpCase& op_case) {
  const auto elements = [](const TensorSpec& spec) { return static_cast<double>(spec.num_elements()); };
  const auto& operands = op_case.operands;
  const std::string& op = op_case.op;
  if (op == "sum_n") return static_cast<double>(operands.size());
  if (op == "reduce_sum" || op == "reduce_mean") return elements(operands[0].spec) / elements(op_case.results[0]);
  if (op == "matmul") {
    return elements(operands[0].spec) / static_cast<double>(op_case.results[0].shape[0]) + 1;  // and the bias
  }
  if (op == "batch_matmul") {
    const Shape& a = operands[0].spec.shape;
    return static_cast<double>(a[a.size() - (op_case.attributes.GetBool("transpose_a") ? 2 : 1)]);
  }
  if (op == "conv_transpose2d") {
    const Shape& weight = operands[1].spec.shape;
    return static_cast<double>(weight[0] / op_case.attributes.GetInt("groups", 1) * weight[2] * weight[3] + 1);
  }
  if (op == "conv2d") return elements(operands[1].spec) / static_cast<double>(operands[1].spec.shape[0]) + 1;
  if (op == "conv2d_grad_input") {
    const Shape& weight = operands[1].spec.shape;
    return static_cast<double>(weight[0] / op_case.attributes.GetInt("groups", 1) * weight[2] * weight[3]);
  }
  if (op == "conv2d_grad_weight") {
    return elements(operands[1].spec) / static_cast<double>(op_case.results[0].shape[0]);
  }
  if (op == "max_pool2d_grad" || op == "avg_pool2d" || op == "avg_pool2d_grad") {
    const std::vector<std::int64_t> size = op_case.attributes.GetInts("kernel_size");
    return static_cast<double>(size[0] * size[1]) + 1;  // and the division
  }
  // Chains of a few products and sums: gradient scaling, decay, velocity, update.
  if (op == "sgd" || op == "momentum") return 8 + ScalingRoundings(op_case);
  if (op == "batch_norm_running_update") return 5;
  if (op == "accumulate_gradient") return 2;
  return 0;
}

Tensors Magnitudes(Tensors tensors) {
  for (reference::Tensor& tensor : tensors) {
    for (double& value : tensor.values) value = std::abs(value);
  }
  return tensors;
}

Errors SumOfProductsErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  Attributes attributes = op_case.attributes;
  attributes.Set("activation", std::string("none"));
  Tensors magnitudes = Magnitudes(inputs);
  // p - lr * v becomes p + lr * v on magnitudes.
  if (op_case.op == "sgd" || op_case.op == "momentum") magnitudes[3].values[0] = -magnitudes[3].values[0];
  Tensors sums = exact;
  reference::Find(op_case.op)(attributes, magnitudes, absl::MakeSpan(sums));
  const bool smooth = op_case.attributes.GetString("activation", "none") != "none";
  const double factor = (TermsOf(op_case) + 2) * kU;
  Errors errors;
  for (std::size_t r = 0; r < exact.size(); ++r) {
    ElementErrors error(exact[r].values.size());
    for (std::size_t i = 0; i < error.size(); ++i) {
      // Activations have slopes of at most 1 and add their own error.
      error[i] = factor * std::abs(sums[r].values[i]) + kUnderflow;
      if (smooth) error[i] += kFunction * std::abs(exact[r].values[i]);
    }
    errors.emplace_back(std::move(error));
  }
  return errors;
}

Errors TanhGradErrors(const Tensors& inputs) {
  ElementErrors error(inputs[0].values.size());
  for (std::size_t i = 0; i < error.size(); ++i) {
    const double y = inputs[1].values[i];
    // y * y, 1 - y^2 and the product each round once; the first is not reduced by the subtraction.
    error[i] = 3 * kU * std::abs(inputs[0].values[i]) * (1 + y * y) + kUnderflow;
  }
  return {error};
}

// Calls `visit(start, stride, extent)` for each line along the case's axis.
template <typename Visit>
void VisitLines(const OpCase& op_case, Visit visit) {
  const Shape& shape = op_case.operands[0].spec.shape;
  const std::size_t axis = reference::NormalizeAxis(op_case.attributes.GetInt("axis", -1), shape.size());
  const auto extent = static_cast<std::size_t>(shape[axis]);
  const auto stride = static_cast<std::size_t>(RowMajorStrides(shape)[axis]);
  const std::size_t lines = static_cast<std::size_t>(NumElements(shape)) / extent;
  for (std::size_t line = 0; line < lines; ++line) {
    visit(line / stride * stride * extent + line % stride, stride, extent);
  }
}

struct LineRange {
  double smallest, largest;
};
LineRange RangeOf(const std::vector<double>& x, std::size_t start, std::size_t stride, std::size_t extent) {
  LineRange range{x[start], x[start]};
  for (std::size_t k = 1; k < extent; ++k) {
    range.smallest = std::min(range.smallest, x[start + k * stride]);
    range.largest = std::max(range.largest, x[start + k * stride]);
  }
  return range;
}

// Relative error of sum_k exp(x_k - max): each argument is rounded once (u |x_k - max| in the exponent), exp has its
// own error, and n terms of one sign are added. A term weighs exp(-d) at distance d, and d exp(-d) < 0.37.
double ExpSumError(std::size_t extent) { return (static_cast<double>(extent) + 2) * kU + kFunction; }

Errors SoftmaxErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const bool is_log = op_case.op == "log_softmax";
  ElementErrors error(exact[0].values.size());
  VisitLines(op_case, [&](std::size_t start, std::size_t stride, std::size_t extent) {
    const LineRange range = RangeOf(inputs[0].values, start, stride, extent);
    double sum = 0;
    for (std::size_t k = 0; k < extent; ++k) sum += std::exp(inputs[0].values[start + k * stride] - range.largest);
    for (std::size_t k = 0; k < extent; ++k) {
      const std::size_t i = start + k * stride;
      const double distance = range.largest - inputs[0].values[i];
      const double y = std::abs(exact[0].values[i]);
      error[i] = is_log ? ExpSumError(extent) + kFunction * std::log(sum) + kU * (2 * distance + 2 * y)
                        : y * (ExpSumError(extent) + kFunction + (distance + 3) * kU) + kUnderflow;
    }
  });
  return {error};
}

Errors SoftmaxGradErrors(const OpCase& op_case, const Tensors& inputs) {
  const bool is_log = op_case.op == "log_softmax_grad";
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& y = inputs[1].values;
  ElementErrors error(dy.size());
  VisitLines(op_case, [&](std::size_t start, std::size_t stride, std::size_t extent) {
    const double roundings = (static_cast<double>(extent) + 4) * kU;
    double sum = 0;
    for (std::size_t k = 0; k < extent; ++k) {
      const std::size_t i = start + k * stride;
      sum += std::abs(is_log ? dy[i] : dy[i] * y[i]);
    }
    for (std::size_t k = 0; k < extent; ++k) {
      const std::size_t i = start + k * stride;
      error[i] = is_log ? 2 * kU * std::abs(dy[i]) + std::exp(y[i]) * sum * (roundings + kFunction)
                        : std::abs(y[i]) * (std::abs(dy[i]) + sum) * roundings;
      // exp(y) may be 0 below the smallest normal number.
      error[i] += kUnderflow * (is_log ? 1 + sum : 1);
    }
  });
  return {error};
}

// What a dense or sparse label weighs.
double LabelAt(const reference::Tensor& labels, std::size_t n, std::size_t c, std::size_t classes) {
  if (IsFloating(labels.spec.dtype)) return std::abs(labels.values[n * classes + c]);
  return labels.values[n] == static_cast<double>(c) ? 1 : 0;
}

Errors CrossEntropyErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const auto rows = static_cast<std::size_t>(inputs[0].spec.shape[0]);
  const auto classes = static_cast<std::size_t>(inputs[0].spec.shape[1]);
  const std::vector<double>& x = inputs[0].values;
  ElementErrors row_error(rows);
  ElementErrors log_sum_exp_error(rows);
  double total_error = 0;
  double total_magnitude = 0;
  for (std::size_t n = 0; n < rows; ++n) {
    const double log_sum_exp = exact[1].values[n];
    const double largest = RangeOf(x, n * classes, 1, classes).largest;
    log_sum_exp_error[n] = ExpSumError(classes) + kFunction * std::abs(log_sum_exp - largest) +
                           2 * kU * (std::abs(largest) + std::abs(log_sum_exp));
    double magnitude = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      const double label = LabelAt(inputs[1], n, c, classes);
      // lse - x may be formed as (max - x) + log(sum): it rounds to the operands' magnitude.
      row_error[n] += label * (log_sum_exp_error[n] + 2 * kU * (std::abs(log_sum_exp) + std::abs(x[n * classes + c])));
      magnitude += label * (std::abs(log_sum_exp) + std::abs(x[n * classes + c]));
    }
    row_error[n] += (static_cast<double>(classes) + 2) * kU * magnitude;
    total_error += row_error[n];
    total_magnitude += magnitude;
  }
  const std::string reduction = op_case.attributes.GetString("reduction", "mean");
  if (reduction == "none") return {row_error, log_sum_exp_error};
  const double total = total_error + (static_cast<double>(rows) + 2) * kU * total_magnitude;
  return {ElementErrors{reduction == "mean" ? total / static_cast<double>(rows) : total}, log_sum_exp_error};
}

Errors CrossEntropyGradErrors(const OpCase& op_case, const Tensors& inputs) {
  const auto rows = static_cast<std::size_t>(inputs[1].spec.shape[0]);
  const auto classes = static_cast<std::size_t>(inputs[1].spec.shape[1]);
  const std::string reduction = op_case.attributes.GetString("reduction", "mean");
  ElementErrors error(rows * classes);
  for (std::size_t n = 0; n < rows; ++n) {
    double cotangent = std::abs(inputs[0].values[reduction == "none" ? n : 0]);
    if (reduction == "mean") cotangent /= static_cast<double>(rows);
    double labels = 0;
    for (std::size_t c = 0; c < classes; ++c) labels += LabelAt(inputs[2], n, c, classes);
    for (std::size_t c = 0; c < classes; ++c) {
      const double argument = inputs[1].values[n * classes + c] - inputs[3].values[n];
      const double probability =
          std::exp(argument) * (kFunction + (std::abs(argument) + static_cast<double>(classes) + 6) * kU);
      error[n * classes + c] = cotangent * (probability * labels + 4 * kU * LabelAt(inputs[2], n, c, classes)) +
                               // The probability may be 0 below the smallest normal number.
                               kUnderflow * (1 + cotangent * labels);
    }
  }
  return {error};
}

Errors MseErrors(const Tensors& exact, double count) {
  // All terms have one sign, so that the sum's error is relative: difference, square, sum, division.
  ElementErrors error;
  for (double value : exact[0].values) error.push_back((count + 5) * kU * std::abs(value) + kUnderflow);
  return {error};
}

}  // namespace

Errors ArithmeticErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const std::string& op = op_case.op;
  if (ExactOps().count(op) != 0) return Errors(exact.size());
  if (const auto relative = RelativeErrors().find(op); relative != RelativeErrors().end()) {
    // Dropped elements are exactly zero.
    const double underflow = op == "dropout" ? 0 : kUnderflow;
    ElementErrors error;
    for (double value : exact[0].values) error.push_back(relative->second * std::abs(value) + underflow);
    return {error};
  }
  if (TermsOf(op_case) > 0) return SumOfProductsErrors(op_case, inputs, exact);
  if (op == "tanh_grad") return TanhGradErrors(inputs);
  if (op == "softmax" || op == "log_softmax") return SoftmaxErrors(op_case, inputs, exact);
  if (op == "softmax_grad" || op == "log_softmax_grad") return SoftmaxGradErrors(op_case, inputs);
  if (op == "softmax_cross_entropy") return CrossEntropyErrors(op_case, inputs, exact);
  if (op == "softmax_cross_entropy_grad") return CrossEntropyGradErrors(op_case, inputs);
  if (op == "mse") {
    return MseErrors(exact, static_cast<double>(inputs[0].values.size() / exact[0].values.size()));
  }
  if (op == "conv2d_statistics") {
    OpCase convolution = op_case;
    convolution.op = "conv2d";
    return Conv2dStatisticsErrors(op_case, *SumOfProductsErrors(convolution, inputs, {exact[0]})[0], exact);
  }
  if (auto errors = BatchNormErrors(op_case, inputs, exact)) return *std::move(errors);
  if (const auto optimizer = OptimizerErrors(op_case, inputs, exact)) return *optimizer;
  if (auto errors = ActivationErrors(op_case, inputs, exact)) return *std::move(errors);
  if (auto errors = SequenceErrors(op_case, inputs, exact)) return *std::move(errors);
  return Errors(exact.size());  // no bound derived: must be exact
}

double HalfUlp(DType dtype, double magnitude) {
  if (magnitude == 0 || !std::isfinite(magnitude)) return 0;
  const auto half_ulp = [magnitude](int fraction_bits, int min_exponent) {
    return std::ldexp(0.5, std::max(std::ilogb(magnitude), min_exponent) - fraction_bits);
  };
  if (dtype == DType::kF16) return half_ulp(10, -14);
  if (dtype == DType::kBF16) return half_ulp(7, -126);
  return dtype == DType::kF32 ? half_ulp(23, -126) : 0;
}

}  // namespace mpc::test
