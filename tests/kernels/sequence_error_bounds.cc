#include "tests/kernels/sequence_error_bounds.h"

#include <algorithm>
#include <cmath>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/reference/image.h"
#include "tests/kernels/attention_error_bounds.h"

namespace mpc::test {
namespace {

// Calls visit(state, i, f, g, o) with the indices of a state and its four gates.
template <typename Visit>
void VisitGates(const Shape& state_shape, Visit visit) {
  const auto width = static_cast<std::size_t>(state_shape[1]);
  const std::size_t states = static_cast<std::size_t>(state_shape[0]) * width;
  for (std::size_t state = 0; state < states; ++state) {
    const std::size_t i = state / width * 4 * width + state % width;
    visit(state, i, i + width, i + 2 * width, i + 3 * width);
  }
}

Errors LstmErrors(const Tensors& inputs, const Tensors& exact) {
  const std::vector<double>& a = exact[2].values;
  ElementErrors hidden(exact[0].values.size()), cell(hidden.size()), gates(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) gates[i] = kFunction * std::abs(a[i]) + kUnderflow;
  VisitGates(inputs[1].spec.shape, [&](std::size_t state, std::size_t i, std::size_t f, std::size_t g, std::size_t o) {
    const double kept = std::abs(a[f] * inputs[1].values[state]);
    const double added = std::abs(a[i] * a[g]);
    cell[state] = (kFunction + 3 * kU) * kept + (2 * kFunction + 3 * kU) * added + kUnderflow;
    // tanh has slopes of at most 1.
    hidden[state] = a[o] * cell[state] + (2 * kFunction + 3 * kU) * std::abs(exact[0].values[state]) + 2 * kUnderflow;
  });
  return {hidden, cell, gates};
}

Errors LstmGradErrors(const Tensors& inputs) {
  const std::vector<double>& a = inputs[2].values;
  ElementErrors dgates(a.size()), dstate(inputs[3].values.size());
  VisitGates(inputs[3].spec.shape, [&](std::size_t state, std::size_t i, std::size_t f, std::size_t g, std::size_t o) {
    const double t = std::tanh(inputs[4].values[state]);
    const double through_hidden = std::abs(inputs[0].values[state] * a[o]);
    // 1 - t^2 keeps the error of t and rounds to the magnitude of its terms.
    const double factor_error = 2 * t * t * kFunction + 2 * kU * (1 + t * t);
    const double dcell = std::abs(inputs[1].values[state]) + through_hidden * (1 - t * t);
    const double dcell_error = through_hidden * factor_error + 4 * kU * dcell;
    const auto scaled = [&](double factor) { return factor * (dcell_error + 6 * kU * dcell) + kUnderflow; };
    dgates[i] = scaled(std::abs(a[g] * a[i]) * (1 - a[i]));
    dgates[f] = scaled(std::abs(inputs[3].values[state] * a[f]) * (1 - a[f]));
    dgates[g] = scaled(std::abs(a[i]) * (1 - a[g] * a[g])) + dcell * std::abs(a[i]) * 2 * kU * (1 + a[g] * a[g]);
    dgates[o] = std::abs(inputs[0].values[state] * t) * a[o] * (1 - a[o]) * (kFunction + 6 * kU) + kUnderflow;
    dstate[state] = scaled(std::abs(a[f]));
  });
  return {dgates, dstate};
}

/// An element of a row that shares statistics: its index, and that of its gamma.
struct Element {
  std::size_t at, parameter;
};

std::vector<std::vector<Element>> RowsOf(const OpCase& op_case, const reference::Tensor& x,
                                         const reference::Tensor& gamma, std::size_t count) {
  std::vector<std::vector<Element>> rows(count);
  if (op_case.op == "layer_norm" || op_case.op == "layer_norm_grad") {
    const std::size_t width = gamma.values.size();
    for (std::size_t i = 0; i < x.values.size(); ++i) rows[i / width].push_back({i, i % width});
    return rows;
  }
  const reference::Image image(op_case.attributes, x.spec.shape);
  const std::int64_t groups = op_case.attributes.Get(attribute::kGroups);
  for (std::int64_t n = 0; n < image.batch; ++n) {
    for (std::int64_t c = 0; c < image.channels; ++c) {
      const auto row = static_cast<std::size_t>(n * groups + c / (image.channels / groups));
      for (std::int64_t i = 0; i < image.height; ++i) {
        for (std::int64_t j = 0; j < image.width; ++j) {
          rows[row].push_back({image.IndexAt(n, c, i, j), static_cast<std::size_t>(c)});
        }
      }
    }
  }
  return rows;
}

// As for batch_norm_train, with rows for channels.
Errors NormErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const double epsilon = reference::FloatAttribute(op_case.attributes, attribute::kEpsilon);
  const std::vector<double>& x = inputs[0].values;
  const std::size_t count = exact[1].values.size();
  const auto rows = RowsOf(op_case, inputs[0], inputs[1], count);
  ElementErrors y_error(x.size()), mean_error(count), inv_std_error(count);
  for (std::size_t r = 0; r < count; ++r) {
    const auto elements = static_cast<double>(rows[r].size());
    const double mean = exact[1].values[r];
    const double inv_std = exact[2].values[r];
    const double variance = 1 / (inv_std * inv_std) - epsilon;
    double magnitude = 0;
    for (const Element& element : rows[r]) magnitude += std::abs(x[element.at]) / elements;
    mean_error[r] = (elements + 2) * kU * magnitude;
    const double shift = mean_error[r] * mean_error[r];
    const double variance_error = (elements + 5) * kU * (variance + shift) + shift + kUnderflow;
    const double relative = 0.5 * variance_error / (variance + epsilon) + 4 * kU;
    inv_std_error[r] = relative * inv_std;
    for (const Element& element : rows[r]) {
      const double gamma = std::abs(inputs[1].values[element.parameter]);
      const double centred = std::abs(x[element.at] - mean);
      const double cancelled = kU * (std::abs(x[element.at]) + std::abs(mean));
      y_error[element.at] = gamma * inv_std * (cancelled + mean_error[r] + centred * (relative + 3 * kU)) +
                            3 * kU * std::abs(inputs[2].values[element.parameter]) + kUnderflow;
    }
  }
  return {y_error, mean_error, inv_std_error};
}

Errors NormGradErrors(const OpCase& op_case, const Tensors& inputs) {
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& x = inputs[1].values;
  const std::vector<double>& gamma = inputs[2].values;
  const std::size_t count = inputs[3].values.size();
  const auto rows = RowsOf(op_case, inputs[1], inputs[2], count);
  ElementErrors dx_error(x.size()), dgamma_error(gamma.size()), dbeta_error(gamma.size());
  // Elements that share a parameter.
  const double terms = static_cast<double>(x.size()) / static_cast<double>(gamma.size());
  for (std::size_t r = 0; r < count; ++r) {
    const auto elements = static_cast<double>(rows[r].size());
    const double inv_std = std::abs(inputs[4].values[r]);
    const auto x_hat = [&](const Element& element) { return std::abs(x[element.at] - inputs[3].values[r]) * inv_std; };
    double sum = 0;
    double centred = 0;
    for (const Element& element : rows[r]) {
      const double g = std::abs(dy[element.at] * gamma[element.parameter]);
      sum += g / elements;
      centred += g * x_hat(element) / elements;
      dgamma_error[element.parameter] += (terms + 7) * kU * std::abs(dy[element.at]) * x_hat(element) + kUnderflow;
      dbeta_error[element.parameter] += (terms + 1) * kU * std::abs(dy[element.at]) + kUnderflow;
    }
    for (const Element& element : rows[r]) {
      const double g = std::abs(dy[element.at] * gamma[element.parameter]);
      dx_error[element.at] =
          inv_std * (6 * kU * g + (elements + 7) * kU * sum + (elements + 15) * kU * x_hat(element) * centred) +
          kUnderflow;
    }
  }
  return {dx_error, dgamma_error, dbeta_error};
}

Errors BceErrors(const OpCase& op_case, const Tensors& inputs) {
  ElementErrors errors;
  double total = 0;
  double magnitude = 0;
  for (std::size_t i = 0; i < inputs[0].values.size(); ++i) {
    const double x = inputs[0].values[i];
    const double terms = std::max(x, 0.0) + std::abs(x * inputs[1].values[i]);
    const double logarithm = std::log1p(std::exp(-std::abs(x)));
    // exp and log each keep their relative error: the slope of log(1 + e) by log e is below 1.
    errors.push_back(3 * kU * (terms + logarithm) + (2 * kFunction + 4 * kU) * logarithm + kUnderflow);
    total += errors.back();
    magnitude += terms + logarithm;
  }
  const LossReduction reduction = op_case.attributes.Get(attribute::kReduction);
  if (reduction == LossReduction::kNone) return {errors};
  const auto count = static_cast<double>(errors.size());
  total += (count + 2) * kU * magnitude;
  return {ElementErrors{reduction == LossReduction::kMean ? total / count : total}};
}

Errors BceGradErrors(const OpCase& op_case, const Tensors& inputs) {
  const LossReduction reduction = op_case.attributes.Get(attribute::kReduction);
  ElementErrors errors;
  for (std::size_t i = 0; i < inputs[1].values.size(); ++i) {
    double cotangent = std::abs(inputs[0].values[reduction == LossReduction::kNone ? i : 0]);
    if (reduction == LossReduction::kMean) cotangent /= static_cast<double>(inputs[1].values.size());
    const double probability = 1 / (1 + std::exp(-inputs[1].values[i]));
    const double difference = std::abs(probability - inputs[2].values[i]);
    errors.push_back(cotangent * (kFunction * probability + 4 * kU * difference) + kUnderflow);
  }
  return {errors};
}

}  // namespace

std::optional<Errors> SequenceErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact) {
  const std::string& op = op_case.op;
  if (op == "attention" || op == "packed_attention") return AttentionErrors(op_case, inputs, exact);
  if (op == "attention_grad" || op == "packed_attention_grad") return AttentionGradErrors(op_case, inputs);
  if (op == "lstm_cell") return LstmErrors(inputs, exact);
  if (op == "lstm_cell_grad") return LstmGradErrors(inputs);
  if (op == "layer_norm" || op == "group_norm") return NormErrors(op_case, inputs, exact);
  if (op == "layer_norm_grad" || op == "group_norm_grad") return NormGradErrors(op_case, inputs);
  if (op == "bce_with_logits") return BceErrors(op_case, inputs);
  if (op == "bce_with_logits_grad") return BceGradErrors(op_case, inputs);
  return std::nullopt;
}

}  // namespace mpc::test
