// Layer and group normalisation: rows of elements that share a mean and a variance, with their derivatives.
#include <cmath>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/reference/image.h"

namespace mpc::reference {
namespace {

// An element of a row: its flat index, and that of its gamma and beta.
struct Element {
  std::size_t at, parameter;
};
using Row = std::vector<Element>;

// The trailing axes that gamma covers.
std::vector<Row> LayerRows(const Tensor& x, const Tensor& gamma) {
  const std::size_t width = gamma.values.size();
  std::vector<Row> rows(x.values.size() / width);
  for (std::size_t i = 0; i < x.values.size(); ++i) rows[i / width].push_back({i, i % width});
  return rows;
}

// The channels of a group of one sample.
std::vector<Row> GroupRows(const Attributes& attributes, const Tensor& x) {
  const Image image(attributes, x.spec.shape);
  const std::int64_t groups = attributes.Get(attribute::kGroups);
  const std::int64_t channels = image.channels / groups;
  std::vector<Row> rows;
  for (std::int64_t n = 0; n < image.batch; ++n) {
    for (std::int64_t group = 0; group < groups; ++group) {
      Row& row = rows.emplace_back();
      for (std::int64_t c = group * channels; c < (group + 1) * channels; ++c) {
        for (std::int64_t i = 0; i < image.height; ++i) {
          for (std::int64_t j = 0; j < image.width; ++j) row.push_back({image.IndexAt(n, c, i, j), std::size_t(c)});
        }
      }
    }
  }
  return rows;
}

void Normalize(const Attributes& attributes, const std::vector<Row>& rows, Inputs inputs, Outputs outputs) {
  const double epsilon = FloatAttribute(attributes, attribute::kEpsilon);
  const std::vector<double>& x = inputs[0].values;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto count = static_cast<double>(rows[r].size());
    double sum = 0;
    for (const Element& element : rows[r]) sum += x[element.at];
    const double mean = sum / count;
    double squares = 0;
    for (const Element& element : rows[r]) squares += (x[element.at] - mean) * (x[element.at] - mean);
    const double inv_std = 1 / std::sqrt(squares / count + epsilon);
    for (const Element& element : rows[r]) {
      outputs[0].values[element.at] =
          (x[element.at] - mean) * inv_std * inputs[1].values[element.parameter] + inputs[2].values[element.parameter];
    }
    outputs[1].values[r] = mean;
    outputs[2].values[r] = inv_std;
  }
}

// The operands are dy, x, gamma, mean and inv_std.
void Differentiate(const std::vector<Row>& rows, Inputs inputs, Outputs outputs) {
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& gamma = inputs[2].values;
  std::vector<double>& dgamma = outputs[1].values;
  std::vector<double>& dbeta = outputs[2].values;
  dgamma.assign(dgamma.size(), 0);
  dbeta.assign(dbeta.size(), 0);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto count = static_cast<double>(rows[r].size());
    const double mean = inputs[3].values[r];
    const double inv_std = inputs[4].values[r];
    const auto x_hat = [&](const Element& element) { return (inputs[1].values[element.at] - mean) * inv_std; };
    double sum = 0;
    double centred = 0;
    for (const Element& element : rows[r]) {
      const double g = dy[element.at] * gamma[element.parameter];
      sum += g;
      centred += g * x_hat(element);
      dgamma[element.parameter] += dy[element.at] * x_hat(element);
      dbeta[element.parameter] += dy[element.at];
    }
    for (const Element& element : rows[r]) {
      const double g = dy[element.at] * gamma[element.parameter];
      outputs[0].values[element.at] = inv_std * (g - sum / count - x_hat(element) * centred / count);
    }
  }
}

void LayerNorm(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  Normalize(attributes, LayerRows(inputs[0], inputs[1]), inputs, outputs);
}
void LayerNormGrad(const Attributes&, Inputs inputs, Outputs outputs) {
  Differentiate(LayerRows(inputs[1], inputs[2]), inputs, outputs);
}
void GroupNorm(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  Normalize(attributes, GroupRows(attributes, inputs[0]), inputs, outputs);
}
void GroupNormGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  Differentiate(GroupRows(attributes, inputs[1]), inputs, outputs);
}

constexpr NamedFunction kTable[] = {
    {"layer_norm", LayerNorm},
    {"layer_norm_grad", LayerNormGrad},
    {"group_norm", GroupNorm},
    {"group_norm_grad", GroupNormGrad},
};

}  // namespace

FunctionTable NormFunctions() { return kTable; }

}  // namespace mpc::reference
