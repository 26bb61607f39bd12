#include "frontend/graph/composed_ops.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/wide_scope.h"
#include "kernels/dtype.h"

namespace mpc {
namespace {

using Comparison = Tensor (*)(const Tensor& a, const Tensor& b);

// Whether x is there and is floating; relu says what is wrong where not.
bool IsFloatingTensor(const Tensor& x) { return x.defined() && x.status().ok() && IsFloating(x.dtype()); }

// Keeps the elements of the last two axes whose column compares to row + diagonal as `keeps` says.
Tensor Triangle(const char* name, const Tensor& x, std::int64_t diagonal, Comparison keeps) {
  if (x.rank() < 2) {
    return internal::FailWith(absl::StrCat(name, " takes a tensor of rank 2 or more, got ", x.spec().ToString()),
                              {1, 1});
  }
  const std::int64_t rows = x.dim(-2), columns = x.dim(-1);
  // Diagonals further out give the same triangle.
  const std::int64_t first = std::clamp(diagonal, -rows - 1, columns + 1);
  const Tensor kept = keeps(arange(columns), reshape(arange(first, first + rows), {rows, 1}));
  return where(kept, x, ops::Fill(x.dtype(), {}, 0));
}

}  // namespace

Tensor elu(const Tensor& x, double alpha) {
  if (!IsFloatingTensor(x)) return relu(x);
  // The derivative at 0 is that of the exponential. NaN passes the comparison.
  const Tensor zero = ops::Fill(x.dtype(), {}, 0);
  const Tensor positive = greater(x, zero);
  const Tensor low = where(positive, zero, x);
  const Tensor power = exp(low);
  // exp(x) - 1 = tanh(x / 2) (exp(x) + 1) has no difference of neighbours near 0. Further out the difference loses two
  // bits at most, and its derivative, exp(x), is the more accurate one. In f16 tanh would round before the product.
  const Tensor near = internal::NarrowedLike(x, tanh(internal::Widened(low) * 0.5) * (power + 1.0));
  const Tensor far = power + -1.0;
  return where(positive, x, where(greater(low, ops::Fill(x.dtype(), {}, -0.5)), near, far) * alpha);
}

Tensor softplus(const Tensor& x) {
  if (!IsFloatingTensor(x)) return relu(x);
  // The exponent is -|x|, written so that the derivative at 0 is that of x.
  const Tensor exponent = where(greater(x, ops::Fill(x.dtype(), {}, 0)), neg(x), x);
  return relu(x) + log1p(exp(exponent));
}

Tensor mish(const Tensor& x) { return x * tanh(softplus(x)); }

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double epsilon) {
  if (x.rank() < 1 || gamma.shape() != Shape{x.dim(x.rank() - 1)}) {
    return internal::FailWith(absl::StrCat("rms_norm takes gamma of the last extent of x, got x ", x.spec().ToString(),
                                           " and gamma ", gamma.spec().ToString()),
                              x.shape());
  }
  if (const std::string error = internal::EpsilonError("rms_norm", epsilon); !error.empty()) {
    return internal::FailWith(error, x.shape());
  }
  // A square of f16 is infinite from 256 on, and a small epsilon is 0 there.
  const internal::WideScope wide_scope;
  const Tensor wide = internal::Widened(x);
  const Tensor y = wide / sqrt(reduce_mean(square(wide), {-1}, /*keep_dims=*/true) + epsilon) * gamma;
  return gamma.dtype() == x.dtype() ? internal::NarrowedLike(x, y) : y;
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis) {
  if (tensors.empty()) return internal::FailWith("stack takes at least one tensor", {});
  Shape shape = tensors[0].shape();
  const std::int64_t rank = tensors[0].rank();
  const std::int64_t place = axis < 0 ? axis + rank + 1 : axis;
  if (place < 0 || place > rank) {
    return internal::FailWith(absl::StrCat("stack axis ", axis, " is outside [", -rank - 1, ", ", rank, "]"), shape);
  }
  for (const Tensor& x : tensors) {
    if (x.shape() == tensors[0].shape()) continue;
    return internal::FailWith(absl::StrCat("stack takes tensors of one shape, got ", tensors[0].spec().ToString(),
                                           " and ", x.spec().ToString()),
                              shape);
  }
  shape.insert(shape.begin() + place, 1);
  std::vector<Tensor> rows;
  rows.reserve(tensors.size());
  for (const Tensor& x : tensors) rows.push_back(reshape(x, shape));
  return concat(rows, place);
}

Tensor tile(const Tensor& x, std::vector<std::int64_t> repeats) {
  Shape shape = x.shape();
  const std::size_t rank = std::max(shape.size(), repeats.size());
  shape.insert(shape.begin(), rank - shape.size(), 1);
  repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  // Each count above 1 gets an axis of its own in front of what it repeats. Other axes join the one before them.
  Shape source = {1}, stretched = {1}, result;
  double elements = static_cast<double>(x.size());
  for (std::size_t axis = 0; axis < rank; ++axis) {
    elements *= static_cast<double>(repeats[axis]);
    if (repeats[axis] < 1 || elements > 0x1p47) {
      return internal::FailWith(absl::StrCat("tile takes counts of 1 or more that give at most 2^47 elements, got ",
                                             repeats[axis], " for axis ", axis, " of ", ShapeToString(shape)),
                                shape);
    }
    if (repeats[axis] > 1) {
      source.insert(source.end(), {1, 1});
      stretched.insert(stretched.end(), {repeats[axis], 1});
    }
    source.back() *= shape[axis];
    stretched.back() *= shape[axis];
    result.push_back(shape[axis] * repeats[axis]);
  }
  return reshape(broadcast_to(reshape(x, source), stretched), result);
}

Tensor tril(const Tensor& x, std::int64_t diagonal) { return Triangle("tril", x, diagonal, less_equal); }
Tensor triu(const Tensor& x, std::int64_t diagonal) { return Triangle("triu", x, diagonal, greater_equal); }

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOpOptions& options) {
  if (x.rank() != 3 || weight.rank() != 3) {
    return internal::FailWith(absl::StrCat("conv1d takes sequences [N, C, L] and a weight [O, C / group, k], got ",
                                           x.spec().ToString(), " and ", weight.spec().ToString()),
                              {1, 1, 1});
  }
  if (options.padding.size() != 2) {
    return internal::FailWith(
        absl::StrCat("conv1d takes a padding of two values, left and right, got ", options.padding.size()), {1, 1, 1});
  }
  const auto image = [](const Tensor& row) { return reshape(row, {row.dim(0), row.dim(1), 1, row.dim(2)}); };
  const Tensor y = conv2d(image(x), image(weight), bias,
                          {.stride = {1, options.stride},
                           .pad_mode = options.pad_mode,
                           .padding = {0, 0, options.padding[0], options.padding[1]},
                           .dilation = {1, options.dilation},
                           .group = options.group});
  return reshape(y, {y.dim(0), y.dim(1), y.dim(3)});
}

Tensor argsort(const Tensor& x, std::int64_t axis, bool descending) { return sort(x, axis, descending).second; }

}  // namespace mpc
