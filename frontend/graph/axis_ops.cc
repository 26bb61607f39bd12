#include "frontend/graph/axis_ops.h"

#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/scalar_ops.h"
#include "kernels/dtype.h"

namespace mpc {
namespace {

using internal::FailWith;

/// Which axes of x are named, or what is wrong with their list.
struct NamedAxes {
  NamedAxes(std::string_view function, const Tensor& x, const std::vector<std::int64_t>& axes)
      : named(static_cast<std::size_t>(x.rank()), false) {
    for (const std::int64_t axis : axes) {
      const std::int64_t place = axis < 0 ? axis + x.rank() : axis;
      const bool exists = place >= 0 && place < x.rank();
      if (exists && !named[static_cast<std::size_t>(place)]) {
        named[static_cast<std::size_t>(place)] = true;
        continue;
      }
      error = absl::StrCat(std::string(function), " takes distinct axes in [", -x.rank(), ", ", x.rank() - 1, "] of ",
                           x.spec().ToString(), ", got [", absl::StrJoin(axes, ", "), "]");
      return;
    }
  }

  std::vector<bool> named;
  std::string error;
};

// x [.., n, ..] as a table of n rows, read in reverse order.
Tensor ReversedAlong(const Tensor& x, std::size_t axis) {
  std::vector<std::int64_t> permutation(static_cast<std::size_t>(x.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[0], permutation[axis]);
  const Tensor rows = axis == 0 ? x : transpose(x, permutation);
  const Tensor reversed = gather(rows, arange(rows.dim(0) - 1, -1, -1));
  return axis == 0 ? reversed : transpose(reversed, permutation);
}

using Pool = Tensor (*)(const Tensor& x, const Pool2dOpOptions& options);

Tensor Pool1d(const char* name, Pool pool, const Tensor& x, const Pool1dOpOptions& options) {
  if (x.rank() != 3) {
    return FailWith(absl::StrCat(name, " takes sequences [N, C, L], got ", x.spec().ToString()), {1, 1, 1});
  }
  if (options.padding.size() != 2) {
    return FailWith(absl::StrCat(name, " takes a padding of two values, left and right, got ", options.padding.size()),
                    {1, 1, 1});
  }
  const Tensor y = pool(reshape(x, {x.dim(0), x.dim(1), 1, x.dim(2)}),
                        {.kernel_size = {1, options.kernel_size},
                         .stride = {1, options.stride == 0 ? options.kernel_size : options.stride},
                         .pad_mode = options.pad_mode,
                         .padding = {0, 0, options.padding[0], options.padding[1]},
                         .count_include_pad = options.count_include_pad});
  return reshape(y, {y.dim(0), y.dim(1), y.dim(3)});
}

// Empty, or why `indices` do not fit x.
std::string IndicesError(const Tensor& x, std::size_t axis, const Tensor& indices) {
  const bool is_i32 = indices.dtype() == DType::kI32;
  bool fits = (is_i32 || indices.dtype() == DType::kI64) && indices.rank() == x.rank();
  for (std::size_t i = 0; fits && i < x.shape().size(); ++i) fits = i == axis || indices.shape()[i] <= x.shape()[i];
  if (!fits) {
    return absl::StrCat(
        "gather_elements takes indices of i32 or i64, of x's rank and no longer than x on axes other "
        "than ",
        axis, ", got x ", x.spec().ToString(), " and indices ", indices.spec().ToString());
  }
  if (is_i32 && x.size() > std::numeric_limits<std::int32_t>::max()) {
    return absl::StrCat("gather_elements takes i64 indices of a tensor with more than 2^31 - 1 elements, got ",
                        indices.spec().ToString());
  }
  return "";
}

}  // namespace

Tensor expand_dims(const Tensor& x, std::int64_t axis) {
  const std::int64_t place = axis < 0 ? axis + x.rank() + 1 : axis;
  if (place < 0 || place > x.rank()) {
    return FailWith(absl::StrCat("expand_dims axis ", axis, " is outside [", -x.rank() - 1, ", ", x.rank(), "]"),
                    x.shape());
  }
  Shape shape = x.shape();
  shape.insert(shape.begin() + place, 1);
  return reshape(x, shape);
}

Tensor unsqueeze(const Tensor& x, std::int64_t axis) { return expand_dims(x, axis); }

Tensor squeeze(const Tensor& x, const std::vector<std::int64_t>& axes) {
  const NamedAxes taken("squeeze", x, axes);
  if (!taken.error.empty()) return FailWith(taken.error, x.shape());
  Shape shape;
  for (std::size_t axis = 0; axis < x.shape().size(); ++axis) {
    const std::int64_t extent = x.shape()[axis];
    if (taken.named[axis] && extent != 1) {
      return FailWith(absl::StrCat("squeeze takes axes of extent 1, got axis ", axis, " of ", x.spec().ToString()),
                      x.shape());
    }
    const bool goes = axes.empty() ? extent == 1 : taken.named[axis];
    if (!goes) shape.push_back(extent);
  }
  return reshape(x, shape);
}

Tensor flip(const Tensor& x, const std::vector<std::int64_t>& axes) {
  const NamedAxes taken("flip", x, axes);
  if (!taken.error.empty()) return FailWith(taken.error, x.shape());
  Tensor y = x;
  for (std::size_t axis = 0; axis < taken.named.size(); ++axis) {
    if (taken.named[axis] && x.shape()[axis] > 1) y = ReversedAlong(y, axis);
  }
  return y;
}

Tensor argmin(const Tensor& x, std::int64_t axis) { return argmax(neg(x), axis); }

Tensor logsumexp(const Tensor& x, const std::vector<std::int64_t>& axes, bool keep_dims) {
  // The derivative is that of any shift; an infinite one would make differences NaN.
  const Tensor largest = stop_gradient(reduce_max(x, axes, /*keep_dims=*/true));
  const Tensor shift = where(isfinite(largest), largest, 0);
  const Tensor sum = reduce_sum(exp(x - shift), axes, /*keep_dims=*/true);
  // A row of minus infinity has no largest element: its logarithm is not taken, so that its derivative is 0.
  const Tensor is_empty = equal(sum, 0);
  const Tensor y = where(is_empty, -std::numeric_limits<double>::infinity(), log(where(is_empty, 1, sum)) + shift);
  if (keep_dims) return y;
  // With no axes named all of them go.
  std::vector<std::int64_t> reduced = axes;
  if (reduced.empty()) {
    reduced.resize(static_cast<std::size_t>(x.rank()));
    std::iota(reduced.begin(), reduced.end(), 0);
  }
  return reduced.empty() ? y : squeeze(y, reduced);
}

Tensor gather_elements(const Tensor& x, std::int64_t axis, const Tensor& indices) {
  const std::int64_t place = axis < 0 ? axis + x.rank() : axis;
  if (place < 0 || place >= x.rank()) {
    return FailWith(absl::StrCat("gather_elements axis ", axis, " is none of ", x.spec().ToString()), indices.shape());
  }
  const auto along = static_cast<std::size_t>(place);
  if (const std::string error = IndicesError(x, along, indices); !error.empty()) {
    return FailWith(error, indices.shape());
  }
  Shape strides(x.shape().size(), 1);
  for (std::size_t i = strides.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * x.shape()[i + 1];
  // Places of elements in x as a row: an offset for each axis, which broadcasts.
  Tensor places = indices * ops::Fill(indices.dtype(), {}, static_cast<double>(strides[along]));
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const std::int64_t extent = indices.shape()[i];
    if (i == along || extent <= 1) continue;
    Shape shape(strides.size(), 1);
    shape[i] = extent;
    places = places + reshape(arange(0, extent * strides[i], strides[i], indices.dtype()), shape);
  }
  const Tensor inside = logical_and(greater_equal(indices, 0), less(indices, static_cast<double>(x.dim(place))));
  return gather(reshape(x, {x.size()}), where(inside, places, -1));
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale_factor) {
  const std::int64_t r = upscale_factor;
  if (x.rank() != 4 || r < 1 || r > x.dim(1) || x.dim(1) % (r * r) != 0) {
    return FailWith(absl::StrCat("pixel_shuffle takes an image [N, C r^2, H, W] and a factor r of 1 or more, got ",
                                 x.spec().ToString(), " and ", r),
                    {1, 1, 1, 1});
  }
  const std::int64_t channels = x.dim(1) / (r * r), height = x.dim(2), width = x.dim(3);
  const Tensor squares = reshape(x, {x.dim(0), channels, r, r, height, width});
  return reshape(transpose(squares, {0, 1, 4, 2, 5, 3}), {x.dim(0), channels, height * r, width * r});
}

Tensor max_pool1d(const Tensor& x, const Pool1dOpOptions& options) {
  return Pool1d("max_pool1d", max_pool2d, x, options);
}

Tensor avg_pool1d(const Tensor& x, const Pool1dOpOptions& options) {
  return Pool1d("avg_pool1d", avg_pool2d, x, options);
}

}  // namespace mpc
