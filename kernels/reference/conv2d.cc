// 2-D cross-correlation, its derivatives, and transposed convolution.
#include <algorithm>
#include <cmath>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/reference/image.h"

namespace mpc::reference {
namespace {

// One product weight[weight] * x[x] that contributes to y[y].
struct Term {
  std::size_t x, weight, y;
};

// Visits every product of a convolution. Each derivative is the same sum read in another direction.
template <typename Visit>
void VisitTerms(const Attributes& attributes, const Shape& x_shape, const Shape& weight_shape, const Shape& y_shape,
                Visit visit) {
  const Image x(attributes, x_shape);
  const Image y(attributes, y_shape);
  const Image weight(Attributes(), weight_shape);  // [O, C / groups, kh, kw] in either data format
  const Window window = ResolveWindow(attributes, {x.height, x.width}, {weight.height, weight.width}).value();
  const std::int64_t outputs_per_group = y.channels / attributes.Get(attribute::kGroups);
  for (std::int64_t n = 0; n < y.batch; ++n) {
    for (std::int64_t o = 0; o < y.channels; ++o) {
      const std::int64_t first_channel = o / outputs_per_group * weight.channels;
      for (std::int64_t i = 0; i < y.height; ++i) {
        for (std::int64_t j = 0; j < y.width; ++j) {
          VisitWindow(window, i, j, [&](std::int64_t u, std::int64_t v, std::int64_t row, std::int64_t column) {
            if (!x.Contains(row, column)) return;
            for (std::int64_t c = 0; c < weight.channels; ++c) {
              visit(Term{x.IndexAt(n, first_channel + c, row, column), weight.IndexAt(o, c, u, v),
                         y.IndexAt(n, o, i, j)});
            }
          });
        }
      }
    }
  }
}

void Conv2d(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Activation activation = attributes.Get(attribute::kActivation);
  std::vector<double>& y = outputs[0].values;
  std::fill(y.begin(), y.end(), 0.0);
  VisitTerms(attributes, inputs[0].spec.shape, inputs[1].spec.shape, outputs[0].spec.shape,
             [&](const Term& term) { y[term.y] += inputs[1].values[term.weight] * inputs[0].values[term.x]; });
  const Image image(attributes, outputs[0].spec.shape);
  for (std::int64_t n = 0; n < image.batch; ++n) {
    for (std::int64_t o = 0; o < image.channels; ++o) {
      const double bias = HasOperand(inputs, 2) ? inputs[2].values[static_cast<std::size_t>(o)] : 0;
      for (std::int64_t i = 0; i < image.height; ++i) {
        for (std::int64_t j = 0; j < image.width; ++j) {
          double& value = y[image.IndexAt(n, o, i, j)];
          value = Activate(activation, value + bias);
        }
      }
    }
  }
}

void Conv2dGradInput(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  std::vector<double>& dx = outputs[0].values;
  std::fill(dx.begin(), dx.end(), 0.0);
  VisitTerms(attributes, outputs[0].spec.shape, inputs[1].spec.shape, inputs[0].spec.shape,
             [&](const Term& term) { dx[term.x] += inputs[1].values[term.weight] * inputs[0].values[term.y]; });
}

void Conv2dGradWeight(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  std::vector<double>& dweight = outputs[0].values;
  std::fill(dweight.begin(), dweight.end(), 0.0);
  VisitTerms(attributes, inputs[0].spec.shape, outputs[0].spec.shape, inputs[1].spec.shape,
             [&](const Term& term) { dweight[term.weight] += inputs[0].values[term.x] * inputs[1].values[term.y]; });
}

// The derivative of a convolution by its input, as a layer: y stands for that input, x for its result.
void ConvTranspose2d(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  std::vector<double>& y = outputs[0].values;
  std::fill(y.begin(), y.end(), 0.0);
  VisitTerms(attributes, outputs[0].spec.shape, inputs[1].spec.shape, inputs[0].spec.shape,
             [&](const Term& term) { y[term.x] += inputs[1].values[term.weight] * inputs[0].values[term.y]; });
  if (!HasOperand(inputs, 2)) return;
  const Image image(attributes, outputs[0].spec.shape);
  for (std::int64_t n = 0; n < image.batch; ++n) {
    for (std::int64_t o = 0; o < image.channels; ++o) {
      for (std::int64_t i = 0; i < image.height; ++i) {
        for (std::int64_t j = 0; j < image.width; ++j) {
          y[image.IndexAt(n, o, i, j)] += inputs[2].values[static_cast<std::size_t>(o)];
        }
      }
    }
  }
}

// The statistics are those of y as it is computed here. The caller rounds to storage.
void Conv2dStatistics(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  Conv2d(attributes, inputs, outputs);
  const Image image(attributes, outputs[0].spec.shape);
  const double epsilon = FloatAttribute(attributes, attribute::kEpsilon);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    const auto [mean, variance] = MomentsOfChannel(image, outputs[0].values, c);
    const auto channel = static_cast<std::size_t>(c);
    outputs[1].values[channel] = mean;
    outputs[2].values[channel] = variance;
    outputs[3].values[channel] = 1 / std::sqrt(variance + epsilon);
  }
}

constexpr NamedFunction kTable[] = {
    {"conv2d", Conv2d},
    {"conv2d_statistics", Conv2dStatistics},
    {"conv2d_grad_input", Conv2dGradInput},
    {"conv2d_grad_weight", Conv2dGradWeight},
    {"conv_transpose2d", ConvTranspose2d},
};

}  // namespace

FunctionTable Conv2dFunctions() { return kTable; }

}  // namespace mpc::reference
