// Concat, slice, split, pad, gather, one_hot, and maxima, minima and products over axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

// For each element of a box of shape `box` that begins at `starts` of a tensor of shape `whole`, its flat index there.
std::vector<std::size_t> BoxIndices(const Shape& box, const Shape& starts, const Shape& whole) {
  const Shape box_strides = RowMajorStrides(box);
  const Shape whole_strides = RowMajorStrides(whole);
  std::vector<std::size_t> indices(static_cast<std::size_t>(NumElements(box)));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::int64_t index = 0;
    for (std::size_t axis = 0; axis < box.size(); ++axis) {
      const std::int64_t position = static_cast<std::int64_t>(i) / box_strides[axis] % box[axis];
      index += (starts[axis] + position) * whole_strides[axis];
    }
    indices[i] = static_cast<std::size_t>(index);
  }
  return indices;
}

// Calls visit(part, starts) for consecutive parts along the attribute `axis`.
template <typename Parts, typename Visit>
void ForEachPart(const Attributes& attributes, const Parts& parts, const Visit& visit) {
  Shape starts(parts[0].spec.shape.size(), 0);
  const std::size_t axis = NormalizeAxis(attributes.GetInt("axis"), starts.size());
  for (auto& part : parts) {
    visit(part, starts);
    starts[axis] += part.spec.shape[axis];
  }
}

void Concat(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  ForEachPart(attributes, inputs, [&](const Tensor& part, const Shape& starts) {
    const std::vector<std::size_t> to = BoxIndices(part.spec.shape, starts, outputs[0].spec.shape);
    for (std::size_t i = 0; i < to.size(); ++i) outputs[0].values[to[i]] = part.values[i];
  });
}

void Split(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  ForEachPart(attributes, outputs, [&](Tensor& part, const Shape& starts) {
    const std::vector<std::size_t> from = BoxIndices(part.spec.shape, starts, inputs[0].spec.shape);
    for (std::size_t i = 0; i < from.size(); ++i) part.values[i] = inputs[0].values[from[i]];
  });
}

void Slice(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<std::size_t> from =
      BoxIndices(outputs[0].spec.shape, attributes.GetInts("starts"), inputs[0].spec.shape);
  for (std::size_t i = 0; i < from.size(); ++i) outputs[0].values[i] = inputs[0].values[from[i]];
}

void Pad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), FloatAttribute(attributes, "value"));
  const std::vector<std::size_t> to =
      BoxIndices(inputs[0].spec.shape, attributes.GetInts("low"), outputs[0].spec.shape);
  for (std::size_t i = 0; i < to.size(); ++i) outputs[0].values[to[i]] = inputs[0].values[i];
}

// NaN outside the table, or 0 where there is no NaN.
void Gather(const Attributes&, Inputs inputs, Outputs outputs) {
  const double outside = IsFloating(outputs[0].spec.dtype) ? std::numeric_limits<double>::quiet_NaN() : 0;
  const auto rows = static_cast<double>(inputs[0].spec.shape[0]);
  const std::size_t width = inputs[0].values.size() / static_cast<std::size_t>(inputs[0].spec.shape[0]);
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    const double row = inputs[1].values[i / width];
    outputs[0].values[i] =
        row >= 0 && row < rows ? inputs[0].values[static_cast<std::size_t>(row) * width + i % width] : outside;
  }
}

void GatherGrad(const Attributes&, Inputs inputs, Outputs outputs) {
  std::vector<double>& table = outputs[0].values;
  const auto rows = static_cast<double>(outputs[0].spec.shape[0]);
  const std::size_t width = table.size() / static_cast<std::size_t>(outputs[0].spec.shape[0]);
  std::fill(table.begin(), table.end(), 0.0);
  for (std::size_t i = 0; i < inputs[0].values.size(); ++i) {
    const double row = inputs[1].values[i / width];
    if (row >= 0 && row < rows) table[static_cast<std::size_t>(row) * width + i % width] += inputs[0].values[i];
  }
}

// The operands are x, indices and updates.
void ScatterAdd(const Attributes&, Inputs inputs, Outputs outputs) {
  std::vector<double>& y = outputs[0].values;
  const auto rows = static_cast<double>(outputs[0].spec.shape[0]);
  const std::size_t width = y.size() / static_cast<std::size_t>(outputs[0].spec.shape[0]);
  y = inputs[0].values;
  for (std::size_t i = 0; i < inputs[2].values.size(); ++i) {
    const double row = inputs[1].values[i / width];
    if (row >= 0 && row < rows) y[static_cast<std::size_t>(row) * width + i % width] += inputs[2].values[i];
  }
}

void OneHot(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const auto depth = static_cast<std::size_t>(outputs[0].spec.shape.back());
  const double on = FloatAttribute(attributes, attribute::kOn);
  const double off = FloatAttribute(attributes, "off");
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = inputs[0].values[i / depth] == static_cast<double>(i % depth) ? on : off;
  }
}

// For each element of x, the index of the result that it belongs to.
std::vector<std::size_t> ResultIndices(const Attributes& attributes, const Shape& x) {
  const std::vector<std::int64_t> axes = attributes.GetInts("axes");
  Shape kept = x;
  for (std::size_t axis = 0; axis < kept.size(); ++axis) {
    if (axes.empty() || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end()) {
      kept[axis] = 1;
    }
  }
  return BroadcastIndices(kept, x);
}

void ReduceMax(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& x = inputs[0].values;
  const std::vector<std::size_t> target = ResultIndices(attributes, inputs[0].spec.shape);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < x.size(); ++i) {
    double& largest = outputs[0].values[target[i]];
    if (x[i] > largest || std::isnan(x[i])) largest = x[i];
  }
}

void ReduceMin(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& x = inputs[0].values;
  const std::vector<std::size_t> target = ResultIndices(attributes, inputs[0].spec.shape);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < x.size(); ++i) {
    double& smallest = outputs[0].values[target[i]];
    if (x[i] < smallest || std::isnan(x[i])) smallest = x[i];
  }
}

void ReduceProd(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& x = inputs[0].values;
  const std::vector<std::size_t> target = ResultIndices(attributes, inputs[0].spec.shape);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 1.0);
  for (std::size_t i = 0; i < x.size(); ++i) outputs[0].values[target[i]] *= x[i];
}

// The operands are dy and x.
void ReduceProdGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& x = inputs[1].values;
  const std::vector<std::size_t> target = ResultIndices(attributes, inputs[1].spec.shape);
  std::vector<double> products(inputs[0].values.size(), 1), zeros(inputs[0].values.size(), 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) {
      zeros[target[i]] += 1;
    } else {
      products[target[i]] *= x[i];
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool others_hold_zero = zeros[target[i]] > (x[i] == 0 ? 1 : 0);
    const double others = others_hold_zero ? 0 : products[target[i]] / (x[i] == 0 ? 1 : x[i]);
    outputs[0].values[i] = inputs[0].values[target[i]] * others;
  }
}

// The operands are dy, x and y. No element equals a NaN.
void ReduceMaxGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& x = inputs[1].values;
  const std::vector<double>& y = inputs[2].values;
  const std::vector<std::size_t> target = ResultIndices(attributes, inputs[1].spec.shape);
  std::vector<double> ties(y.size(), 0);
  for (std::size_t i = 0; i < x.size(); ++i) ties[target[i]] += x[i] == y[target[i]] ? 1 : 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    outputs[0].values[i] = x[i] == y[target[i]] ? inputs[0].values[target[i]] / ties[target[i]] : 0;
  }
}

constexpr NamedFunction kTable[] = {
    {"concat", Concat},
    {"split", Split},
    {"slice", Slice},
    {"pad", Pad},
    {"gather", Gather},
    {"gather_grad", GatherGrad},
    {"one_hot", OneHot},
    {"reduce_max", ReduceMax},
    {"reduce_max_grad", ReduceMaxGrad},
    {"scatter_add", ScatterAdd},
    {"reduce_min", ReduceMin},
    {"reduce_prod", ReduceProd},
    {"reduce_prod_grad", ReduceProdGrad},
};

}  // namespace

FunctionTable MovementFunctions() { return kTable; }

}  // namespace mpc::reference
