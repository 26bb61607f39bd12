// Maximum and mean over windows, with their derivatives.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/reference/image.h"

namespace mpc::reference {
namespace {

Window PoolingWindow(const Attributes& attributes, const Image& x) {
  const std::vector<std::int64_t> size = attributes.GetInts("kernel_size");
  return ResolveWindow(attributes, {x.height, x.width}, {size[0], size[1]}).value();
}

template <typename Visit>
void VisitPixels(const Image& image, Visit visit) {
  for (std::int64_t n = 0; n < image.batch; ++n) {
    for (std::int64_t c = 0; c < image.channels; ++c) {
      for (std::int64_t i = 0; i < image.height; ++i) {
        for (std::int64_t j = 0; j < image.width; ++j) visit(n, c, i, j);
      }
    }
  }
}

void MaxPool2d(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Image x(attributes, inputs[0].spec.shape);
  const Image y(attributes, outputs[0].spec.shape);
  const Window window = PoolingWindow(attributes, x);
  VisitPixels(y, [&](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
    // A window that lies in the padding altogether has no winner: -inf, which receives no cotangent.
    double largest = -std::numeric_limits<double>::infinity();
    std::int64_t winner = -1;
    VisitWindow(window, i, j, [&](std::int64_t u, std::int64_t v, std::int64_t row, std::int64_t column) {
      if (!x.Contains(row, column)) return;
      const double candidate = inputs[0].values[x.IndexAt(n, c, row, column)];
      if (winner >= 0 && !(candidate > largest) && (!std::isnan(candidate) || std::isnan(largest))) return;
      largest = candidate;
      winner = u * window.kernel[1] + v;
    });
    outputs[0].values[y.IndexAt(n, c, i, j)] = largest;
    outputs[1].values[y.IndexAt(n, c, i, j)] = static_cast<double>(winner);
  });
}

void MaxPool2dGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Image dy(attributes, inputs[0].spec.shape);
  const Image dx(attributes, outputs[0].spec.shape);
  const Window window = PoolingWindow(attributes, dx);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  VisitPixels(dy, [&](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
    const std::size_t element = dy.IndexAt(n, c, i, j);
    const auto winner = static_cast<std::int64_t>(inputs[1].values[element]);
    VisitWindow(window, i, j, [&](std::int64_t u, std::int64_t v, std::int64_t row, std::int64_t column) {
      if (u * window.kernel[1] + v != winner || !dx.Contains(row, column)) return;
      outputs[0].values[dx.IndexAt(n, c, row, column)] += inputs[0].values[element];
    });
  });
}

// The divisor of a window's sum.
double AverageCount(const Attributes& attributes, const Image& x, const Window& window, std::int64_t i,
                    std::int64_t j) {
  if (attributes.Get(attribute::kCountIncludePad)) {
    return static_cast<double>(window.kernel[0] * window.kernel[1]);
  }
  std::int64_t inside = 0;
  VisitWindow(window, i, j, [&](std::int64_t, std::int64_t, std::int64_t row, std::int64_t column) {
    if (x.Contains(row, column)) ++inside;
  });
  return static_cast<double>(std::max<std::int64_t>(inside, 1));
}

void AvgPool2d(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Image x(attributes, inputs[0].spec.shape);
  const Image y(attributes, outputs[0].spec.shape);
  const Window window = PoolingWindow(attributes, x);
  VisitPixels(y, [&](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
    double sum = 0;
    VisitWindow(window, i, j, [&](std::int64_t, std::int64_t, std::int64_t row, std::int64_t column) {
      if (x.Contains(row, column)) sum += inputs[0].values[x.IndexAt(n, c, row, column)];
    });
    outputs[0].values[y.IndexAt(n, c, i, j)] = sum / AverageCount(attributes, x, window, i, j);
  });
}

void AvgPool2dGrad(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Image dy(attributes, inputs[0].spec.shape);
  const Image dx(attributes, outputs[0].spec.shape);
  const Window window = PoolingWindow(attributes, dx);
  std::fill(outputs[0].values.begin(), outputs[0].values.end(), 0.0);
  VisitPixels(dy, [&](std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) {
    const double share = inputs[0].values[dy.IndexAt(n, c, i, j)] / AverageCount(attributes, dx, window, i, j);
    VisitWindow(window, i, j, [&](std::int64_t, std::int64_t, std::int64_t row, std::int64_t column) {
      if (dx.Contains(row, column)) outputs[0].values[dx.IndexAt(n, c, row, column)] += share;
    });
  });
}

constexpr NamedFunction kTable[] = {
    {"max_pool2d", MaxPool2d},
    {"max_pool2d_grad", MaxPool2dGrad},
    {"avg_pool2d", AvgPool2d},
    {"avg_pool2d_grad", AvgPool2dGrad},
};

}  // namespace

FunctionTable PoolingFunctions() { return kTable; }

}  // namespace mpc::reference
