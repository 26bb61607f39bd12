#include "frontend/graph/composed_ops.h"

#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"

namespace mpc {

Tensor elu(const Tensor& x, double alpha) {
  // x - relu(x) is min(x, 0), whose derivative at 0 is 1.
  const Tensor positive = relu(x);
  return positive + (exp(x - positive) + -1.0) * alpha;
}

Tensor softplus(const Tensor& x) {
  // The exponent is -|x|, written so that the derivative at 0 is that of x.
  const Tensor positive = relu(x);
  return positive + log1p(exp(x - positive - positive));
}

Tensor mish(const Tensor& x) { return x * tanh(softplus(x)); }

Tensor rms_norm(const Tensor& x, const Tensor& gamma, double epsilon) {
  if (x.rank() < 1 || gamma.shape() != Shape{x.dim(x.rank() - 1)}) {
    return internal::FailWith(absl::StrCat("rms_norm takes gamma of the last extent of x, got x ", x.spec().ToString(),
                                           " and gamma ", gamma.spec().ToString()),
                              x.shape());
  }
  return x / sqrt(reduce_mean(square(x), {-1}, /*keep_dims=*/true) + epsilon) * gamma;
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

Tensor argsort(const Tensor& x, std::int64_t axis, bool descending) { return sort(x, axis, descending).second; }

}  // namespace mpc
