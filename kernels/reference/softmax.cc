// Softmax and log-softmax along an axis, with their derivatives.
#include <algorithm>
#include <cmath>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

// Calls `visit(at)` for every line along the axis; `at(k)` is the flat index of its element k.
template <typename Visit>
void VisitLines(const Attributes& attributes, const Shape& shape, Visit visit) {
  const std::size_t axis = NormalizeAxis(attributes.Get(attribute::kLastAxis), shape.size());
  const auto extent = static_cast<std::size_t>(shape[axis]);
  const auto stride = static_cast<std::size_t>(RowMajorStrides(shape)[axis]);
  const std::size_t lines = static_cast<std::size_t>(NumElements(shape)) / extent;
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t start = line / stride * stride * extent + line % stride;
    visit(extent, [start, stride](std::size_t k) { return start + k * stride; });
  }
}

// The largest element of a line, and the sum of exp(element - largest).
struct ExpSum {
  double largest, sum;
};

template <typename At>
ExpSum ExpSumOf(const std::vector<double>& x, std::size_t extent, At at) {
  double largest = x[at(0)];
  for (std::size_t k = 1; k < extent; ++k) largest = std::max(largest, x[at(k)]);
  double sum = 0;
  for (std::size_t k = 0; k < extent; ++k) sum += std::exp(x[at(k)] - largest);
  return {largest, sum};
}

void Softmax(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& x = inputs[0].values;
  std::vector<double>& y = outputs[0].values;
  VisitLines(attributes, inputs[0].spec.shape, [&](std::size_t extent, auto at) {
    const auto [largest, sum] = ExpSumOf(x, extent, at);
    for (std::size_t k = 0; k < extent; ++k) y[at(k)] = std::exp(x[at(k)] - largest) / sum;
  });
}

void LogSoftmax(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& x = inputs[0].values;
  std::vector<double>& y = outputs[0].values;
  VisitLines(attributes, inputs[0].spec.shape, [&](std::size_t extent, auto at) {
    const auto [largest, sum] = ExpSumOf(x, extent, at);
    const double log_sum = std::log(sum);
    for (std::size_t k = 0; k < extent; ++k) y[at(k)] = x[at(k)] - largest - log_sum;
  });
}

void SoftmaxGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& y = inputs[1].values;
  VisitLines(attributes, inputs[0].spec.shape, [&](std::size_t extent, auto at) {
    double sum = 0;
    for (std::size_t k = 0; k < extent; ++k) sum += dy[at(k)] * y[at(k)];
    for (std::size_t k = 0; k < extent; ++k) outputs[0].values[at(k)] = y[at(k)] * (dy[at(k)] - sum);
  });
}

void LogSoftmaxGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& y = inputs[1].values;
  VisitLines(attributes, inputs[0].spec.shape, [&](std::size_t extent, auto at) {
    double sum = 0;
    for (std::size_t k = 0; k < extent; ++k) sum += dy[at(k)];
    for (std::size_t k = 0; k < extent; ++k) outputs[0].values[at(k)] = dy[at(k)] - std::exp(y[at(k)]) * sum;
  });
}

constexpr NamedFunction kTable[] = {
    {"softmax", Softmax},
    {"log_softmax", LogSoftmax},
    {"softmax_grad", SoftmaxGrad},
    {"log_softmax_grad", LogSoftmaxGrad},
};

}  // namespace

FunctionTable SoftmaxFunctions() { return kTable; }

}  // namespace mpc::reference
