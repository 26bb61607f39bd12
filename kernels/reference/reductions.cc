// Sums and means over axes, and argmax.
#include <algorithm>
#include <cmath>

#include "kernels/known_attributes.h"
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

constexpr NamedFunction kTable[] = {
    {"reduce_sum", ReduceSum},
    {"reduce_mean", ReduceMean},
    {"argmax", Argmax},
};

}  // namespace

FunctionTable ReductionFunctions() { return kTable; }

}  // namespace mpc::reference
