#include "tests/kernels/softmax_error_bounds.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::test {
namespace {

// Calls `visit(start, stride, extent)` for each line along the case's axis.
template <typename Visit>
void VisitLines(const OpCase& op_case, Visit visit) {
  const Shape& shape = op_case.operands[0].spec.shape;
  const std::size_t axis = reference::NormalizeAxis(op_case.attributes.Get(attribute::kLastAxis), shape.size());
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

Errors RowErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
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

Errors RowGradErrors(const OpCase& op_case, const Tensors& inputs) {
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

// The classes of logits, whose rows may be longer.
std::size_t ClassesOf(const OpCase& op_case, const reference::Tensor& logits) {
  return static_cast<std::size_t>(op_case.attributes.GetInt("classes", logits.spec.shape[1]));
}

Errors CrossEntropyErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const auto rows = static_cast<std::size_t>(inputs[0].spec.shape[0]);
  const auto columns = static_cast<std::size_t>(inputs[0].spec.shape[1]);
  const std::size_t classes = ClassesOf(op_case, inputs[0]);
  const std::vector<double>& x = inputs[0].values;
  ElementErrors row_error(rows);
  ElementErrors log_sum_exp_error(rows);
  double total_error = 0;
  double total_magnitude = 0;
  for (std::size_t n = 0; n < rows; ++n) {
    const double log_sum_exp = exact[1].values[n];
    const double largest = RangeOf(x, n * columns, 1, classes).largest;
    log_sum_exp_error[n] = ExpSumError(classes) + kFunction * std::abs(log_sum_exp - largest) +
                           2 * kU * (std::abs(largest) + std::abs(log_sum_exp));
    double magnitude = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      const double label = LabelAt(inputs[1], n, c, classes);
      // lse - x may be formed as (max - x) + log(sum): it rounds to the operands' magnitude.
      row_error[n] += label * (log_sum_exp_error[n] + 2 * kU * (std::abs(log_sum_exp) + std::abs(x[n * columns + c])));
      magnitude += label * (std::abs(log_sum_exp) + std::abs(x[n * columns + c]));
    }
    row_error[n] += (static_cast<double>(classes) + 2) * kU * magnitude;
    total_error += row_error[n];
    total_magnitude += magnitude;
  }
  const LossReduction reduction = op_case.attributes.Get(attribute::kReduction);
  if (reduction == LossReduction::kNone) return {row_error, log_sum_exp_error};
  const double total = total_error + (static_cast<double>(rows) + 2) * kU * total_magnitude;
  return {ElementErrors{reduction == LossReduction::kMean ? total / static_cast<double>(rows) : total},
          log_sum_exp_error};
}

Errors CrossEntropyGradErrors(const OpCase& op_case, const Tensors& inputs) {
  const auto rows = static_cast<std::size_t>(inputs[1].spec.shape[0]);
  const auto columns = static_cast<std::size_t>(inputs[1].spec.shape[1]);
  const std::size_t classes = ClassesOf(op_case, inputs[1]);
  const LossReduction reduction = op_case.attributes.Get(attribute::kReduction);
  ElementErrors error(rows * columns);  // none behind the classes
  for (std::size_t n = 0; n < rows; ++n) {
    double cotangent = std::abs(inputs[0].values[reduction == LossReduction::kNone ? n : 0]);
    if (reduction == LossReduction::kMean) cotangent /= static_cast<double>(rows);
    double labels = 0;
    for (std::size_t c = 0; c < classes; ++c) labels += LabelAt(inputs[2], n, c, classes);
    for (std::size_t c = 0; c < classes; ++c) {
      const double argument = inputs[1].values[n * columns + c] - inputs[3].values[n];
      const double probability =
          std::exp(argument) * (kFunction + (std::abs(argument) + static_cast<double>(classes) + 6) * kU);
      error[n * columns + c] = cotangent * (probability * labels + 4 * kU * LabelAt(inputs[2], n, c, classes)) +
                               // The probability may be 0 below the smallest normal number.
                               kUnderflow * (1 + cotangent * labels);
    }
  }
  return {error};
}

}  // namespace

std::optional<Errors> SoftmaxErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const std::string& op = op_case.op;
  if (op == "softmax" || op == "log_softmax") return RowErrors(op_case, inputs, exact);
  if (op == "softmax_grad" || op == "log_softmax_grad") return RowGradErrors(op_case, inputs);
  if (op == "softmax_cross_entropy") return CrossEntropyErrors(op_case, inputs, exact);
  if (op == "softmax_cross_entropy_grad") return CrossEntropyGradErrors(op_case, inputs);
  return std::nullopt;
}

}  // namespace mpc::test
