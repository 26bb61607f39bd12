// Cross-entropies and squared error, with their derivatives.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

// Element losses to the result: kept, summed or averaged.
void Reduce(const Attributes& attributes, const std::vector<double>& losses, std::vector<double>& result) {
  const LossReduction reduction = attributes.Get(attribute::kReduction);
  if (reduction == LossReduction::kNone) {
    result = losses;
    return;
  }
  const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
  result[0] = reduction == LossReduction::kMean ? sum / static_cast<double>(losses.size()) : sum;
}

// The cotangent of element loss `i` of `count`.
double ElementCotangent(const Attributes& attributes, const Tensor& dloss, std::size_t i, std::size_t count) {
  const LossReduction reduction = attributes.Get(attribute::kReduction);
  if (reduction == LossReduction::kNone) return dloss.values[i];
  return reduction == LossReduction::kMean ? Scalar(dloss) / static_cast<double>(count) : Scalar(dloss);
}

// The classes of logits: `classes`, or all of a row.
std::size_t ClassesOf(const Attributes& attributes, const Tensor& logits) {
  return static_cast<std::size_t>(attributes.GetInt("classes", logits.spec.shape[1]));
}

// Weight of class `c` for row `n`: a dense label, or the one-hot form of a sparse one.
double LabelAt(const Tensor& labels, std::size_t n, std::size_t c, std::size_t classes) {
  if (IsFloating(labels.spec.dtype)) return labels.values[n * classes + c];
  return labels.values[n] == static_cast<double>(c) ? 1 : 0;
}

bool LabelIsValid(const Tensor& labels, std::size_t n, std::size_t classes) {
  if (IsFloating(labels.spec.dtype)) return true;
  return labels.values[n] >= 0 && labels.values[n] < static_cast<double>(classes);
}

void SoftmaxCrossEntropy(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const auto rows = static_cast<std::size_t>(inputs[0].spec.shape[0]);
  const auto columns = static_cast<std::size_t>(inputs[0].spec.shape[1]);
  const std::size_t classes = ClassesOf(attributes, inputs[0]);
  std::vector<double> losses(rows);
  for (std::size_t n = 0; n < rows; ++n) {
    const double* const logits = inputs[0].values.data() + n * columns;
    const double largest = *std::max_element(logits, logits + classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - largest);
    const double log_sum_exp = largest + std::log(sum);
    double loss = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      const double label = LabelAt(inputs[1], n, c, classes);
      if (label != 0) loss += label * (log_sum_exp - logits[c]);
    }
    losses[n] = LabelIsValid(inputs[1], n, classes) ? loss : std::numeric_limits<double>::quiet_NaN();
    outputs[1].values[n] = log_sum_exp;
  }
  Reduce(attributes, losses, outputs[0].values);
}

void SoftmaxCrossEntropyGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const auto rows = static_cast<std::size_t>(inputs[1].spec.shape[0]);
  const auto columns = static_cast<std::size_t>(inputs[1].spec.shape[1]);
  const std::size_t classes = ClassesOf(attributes, inputs[1]);
  for (std::size_t n = 0; n < rows; ++n) {
    const double cotangent = ElementCotangent(attributes, inputs[0], n, rows);
    double label_sum = IsFloating(inputs[2].spec.dtype) ? 0 : 1;
    if (IsFloating(inputs[2].spec.dtype)) {
      for (std::size_t c = 0; c < classes; ++c) label_sum += LabelAt(inputs[2], n, c, classes);
    }
    for (std::size_t c = 0; c < classes; ++c) {
      const double probability = std::exp(inputs[1].values[n * columns + c] - inputs[3].values[n]);
      outputs[0].values[n * columns + c] = cotangent * (probability * label_sum - LabelAt(inputs[2], n, c, classes));
    }
    for (std::size_t c = classes; c < columns; ++c) outputs[0].values[n * columns + c] = 0;
  }
}

void Mse(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  std::vector<double> losses(inputs[0].values.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double difference = inputs[0].values[i] - inputs[1].values[i];
    losses[i] = difference * difference;
  }
  Reduce(attributes, losses, outputs[0].values);
}

void MseGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::size_t count = inputs[1].values.size();
  for (std::size_t i = 0; i < count; ++i) {
    outputs[0].values[i] =
        2 * ElementCotangent(attributes, inputs[0], i, count) * (inputs[1].values[i] - inputs[2].values[i]);
  }
}

void BceWithLogits(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  std::vector<double> losses(inputs[0].values.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double x = inputs[0].values[i], label = inputs[1].values[i];
    const double wrong = x > 0 ? 1 - label : label;
    losses[i] = (wrong != 0 ? std::abs(x) * wrong : 0) + std::log1p(std::exp(-std::abs(x)));
  }
  Reduce(attributes, losses, outputs[0].values);
}

void BceWithLogitsGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::size_t count = inputs[1].values.size();
  for (std::size_t i = 0; i < count; ++i) {
    const double difference = Activate(Activation::kSigmoid, inputs[1].values[i]) - inputs[2].values[i];
    outputs[0].values[i] = ElementCotangent(attributes, inputs[0], i, count) * difference;
  }
}

constexpr NamedFunction kTable[] = {
    {"softmax_cross_entropy", SoftmaxCrossEntropy},
    {"softmax_cross_entropy_grad", SoftmaxCrossEntropyGrad},
    {"mse", Mse},
    {"mse_grad", MseGrad},
    {"bce_with_logits", BceWithLogits},
    {"bce_with_logits_grad", BceWithLogitsGrad},
};

}  // namespace

FunctionTable LossFunctions() { return kTable; }

}  // namespace mpc::reference
