#include "frontend/graph/statistics_ops.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/scalar_ops.h"
#include "frontend/graph/wide_scope.h"
#include "kernels/dtype.h"

namespace mpc {
namespace {

using internal::FailWith;
using internal::NarrowedLike;
using internal::Widened;
using internal::WideScope;

// The root of x >= 0, whose derivative is 0 instead of infinite where x is 0.
Tensor RootOf(const Tensor& x) {
  const Tensor is_zero = equal(x, 0);
  return where(is_zero, 0, sqrt(where(is_zero, 1, x)));
}

// var in f32.
Tensor WideVariance(const char* name, const Tensor& x, const std::vector<std::int64_t>& axes, std::int64_t ddof,
                    bool keep_dims) {
  const Tensor wide = Widened(x);
  const Tensor mean = reduce_mean(wide, axes, /*keep_dims=*/true);
  if (!mean.status().ok()) return mean;
  const std::int64_t count = x.size() / mean.size();
  if (ddof < 0 || ddof >= count) {
    return FailWith(absl::StrCat(name, " takes a ddof of 0 or more and below ", count,
                                 ", the count of elements of a variance, got ", ddof),
                    mean.shape());
  }
  const Tensor sum = reduce_sum(square(wide - mean), axes, keep_dims);
  return sum / static_cast<double>(count - ddof);
}

Tensor WideNorm(const Tensor& x, double ord, const std::vector<std::int64_t>& axes, bool keep_dims) {
  if (ord == 1) return reduce_sum(abs(x), axes, keep_dims);
  if (ord == 2) return RootOf(reduce_sum(square(x), axes, keep_dims));
  return reduce_max(abs(x), axes, keep_dims);
}

}  // namespace

Tensor var(const Tensor& x, const std::vector<std::int64_t>& axes, std::int64_t ddof, bool keep_dims) {
  const WideScope wide_scope;
  return NarrowedLike(x, WideVariance("var", x, axes, ddof, keep_dims));
}

Tensor stddev(const Tensor& x, const std::vector<std::int64_t>& axes, std::int64_t ddof, bool keep_dims) {
  const WideScope wide_scope;
  return NarrowedLike(x, RootOf(WideVariance("stddev", x, axes, ddof, keep_dims)));
}

Tensor norm(const Tensor& x, double ord, const std::vector<std::int64_t>& axes, bool keep_dims) {
  if (ord != 1 && ord != 2 && ord != std::numeric_limits<double>::infinity()) {
    return FailWith(absl::StrCat("norm takes the order 1, 2 or infinity, got ", ord), x.shape());
  }
  const WideScope wide_scope;
  return NarrowedLike(x, WideNorm(Widened(x), ord, axes, keep_dims));
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t axis, double eps) {
  if (const std::string error = internal::EpsilonError("cosine_similarity", eps); !error.empty()) {
    return FailWith(error, a.shape());
  }
  const bool exists = axis >= -a.rank() && axis < a.rank();
  if (!exists || a.rank() != b.rank() || a.dim(axis) != b.dim(axis)) {
    return FailWith(absl::StrCat("cosine_similarity takes tensors of one rank and one extent of axis ", axis, ", got ",
                                 a.spec().ToString(), " and ", b.spec().ToString()),
                    a.shape());
  }
  const WideScope wide_scope;
  // Each is divided by its norm first: products of large elements are finite.
  const auto direction = [&](const Tensor& x) { return x / maximum(WideNorm(x, 2, {axis}, /*keep_dims=*/true), eps); };
  const Tensor cosines = reduce_sum(direction(Widened(a)) * direction(Widened(b)), {axis});
  return IsLowPrecision(a.dtype()) ? NarrowedLike(b, cosines) : cosines;
}

}  // namespace mpc
