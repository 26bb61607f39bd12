// Sums and means over axes, argmax, running sums, and orders along an axis.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/axis_lines.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

void ReduceSum(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Shape& shape = inputs[0].spec.shape;
  const std::vector<std::int64_t> axes = attributes.GetInts("axes");
  // The result with its reduced axes kept as extents of 1: the operand's elements map to it as in broadcasting.
  Shape kept = shape;
  for (std::size_t axis = 0; axis < kept.size(); ++axis) {
    const bool reduced =
        axes.empty() || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
    if (reduced) kept[axis] = 1;
  }
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  const std::vector<std::size_t> target = BroadcastIndices(kept, shape);
  for (std::size_t i = 0; i < target.size(); ++i) outputs[0].values[target[i]] += inputs[0].values[i];
}

void ReduceMean(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  ReduceSum(attributes, inputs, outputs);
  const auto count = static_cast<double>(inputs[0].values.size()) / static_cast<double>(outputs[0].values.size());
  for (double& value : outputs[0].values) value /= count;
}

void Argmax(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Shape& shape = inputs[0].spec.shape;
  const std::size_t axis = NormalizeAxis(attributes.Get(attribute::kLastAxis), shape.size());
  const auto extent = static_cast<std::size_t>(shape[axis]);
  const auto stride = static_cast<std::size_t>(RowMajorStrides(shape)[axis]);
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    const double* const line = inputs[0].values.data() + i / stride * stride * extent + i % stride;
    std::size_t best = 0;
    for (std::size_t k = 1; k < extent; ++k) {
      const double largest = line[best * stride];
      const double candidate = line[k * stride];
      if (candidate > largest || (std::isnan(candidate) && !std::isnan(largest))) best = k;
    }
    outputs[0].values[i] = static_cast<double>(best);
  }
}

void Cumsum(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const AxisLines lines = AxisLines::Of(attributes, inputs[0].spec.shape);
  for (std::int64_t line = 0; line < lines.count(); ++line) {
    double sum = 0;
    for (std::int64_t step = 0; step < lines.extent; ++step) {
      const std::int64_t index = attributes.GetBool("reverse") ? lines.extent - 1 - step : step;
      const auto at = static_cast<std::size_t>(lines.Offset(line, index));
      const double before = sum;
      sum += inputs[0].values[at];
      outputs[0].values[at] = attributes.GetBool("exclusive") ? before : sum;
    }
  }
}

// Whether a comes before b in ascending order: a NaN is the largest.
bool Ascends(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The first elements in order of each line of x, as many as the results have, and their indices.
void Order(const AxisLines& lines, std::int64_t count, bool descending, Inputs inputs, Outputs outputs) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(lines.extent));
  AxisLines results = lines;
  results.extent = count;
  for (std::int64_t line = 0; line < lines.count(); ++line) {
    const auto value = [&](std::int64_t index) {
      return inputs[0].values[static_cast<std::size_t>(lines.Offset(line, index))];
    };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return descending ? Ascends(value(b), value(a)) : Ascends(value(a), value(b));
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(results.Offset(line, i));
      outputs[0].values[at] = value(order[static_cast<std::size_t>(i)]);
      outputs[1].values[at] = static_cast<double>(order[static_cast<std::size_t>(i)]);
    }
  }
}

void Sort(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const AxisLines lines = AxisLines::Of(attributes, inputs[0].spec.shape);
  Order(lines, lines.extent, attributes.GetBool("descending"), inputs, outputs);
}

void TopK(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const AxisLines lines = AxisLines::Of(attributes, inputs[0].spec.shape);
  Order(lines, attributes.GetInt("k"), !attributes.GetBool("smallest"), inputs, outputs);
}

// The operands are dy and indices.
void TopKGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const AxisLines from = AxisLines::Of(attributes, inputs[0].spec.shape);
  const AxisLines to = AxisLines::Of(attributes, outputs[0].spec.shape);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  for (std::int64_t line = 0; line < from.count(); ++line) {
    for (std::int64_t i = 0; i < from.extent; ++i) {
      const auto at = static_cast<std::size_t>(from.Offset(line, i));
      const auto index = static_cast<std::int64_t>(inputs[1].values[at]);
      outputs[0].values[static_cast<std::size_t>(to.Offset(line, index))] = inputs[0].values[at];
    }
  }
}

constexpr NamedFunction kTable[] = {
    {"reduce_sum", ReduceSum}, {"reduce_mean", ReduceMean}, {"argmax", Argmax}, {"cumsum", Cumsum}, {"sort", Sort},
    {"top_k", TopK},           {"top_k_grad", TopKGrad},
};

}  // namespace

FunctionTable ReductionFunctions() { return kTable; }

}  // namespace mpc::reference
