#include "frontend/graph/array_ops.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/scalar_ops.h"

namespace mpc {
namespace {

using internal::BroadcastsTo;
using internal::FailWith;

bool HasAxis(const Tensor& x, std::int64_t axis) { return axis >= -x.rank() && axis < x.rank(); }

Tensor RolledAlong(const Tensor& x, std::int64_t shift, std::int64_t axis) {
  const std::int64_t extent = x.dim(axis);
  // An x that carries an error has no elements.
  if (extent == 0) return split(x, {extent}, axis)[0];
  const std::int64_t moved = (shift % extent + extent) % extent;
  if (moved == 0) return x;
  const std::vector<Tensor> parts = split(x, {extent - moved, moved}, axis);
  return concat({parts[1], parts[0]}, axis);
}

// True on the diagonal of [rows, columns].
Tensor Diagonal(std::int64_t rows, std::int64_t columns) {
  return equal(reshape(arange(rows), {rows, 1}), arange(columns));
}

}  // namespace

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  if (mask.dtype() != DType::kBool || !BroadcastsTo(mask.shape(), x.shape())) {
    return FailWith(absl::StrCat("masked_fill takes a mask of i1 that broadcasts to x, got ", mask.spec().ToString(),
                                 " for ", x.spec().ToString()),
                    x.shape());
  }
  return where(mask, value, x);
}

Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shifts, const std::vector<std::int64_t>& axes) {
  const bool exist = std::all_of(axes.begin(), axes.end(), [&](std::int64_t axis) { return HasAxis(x, axis); });
  if (!exist || shifts.size() != std::max<std::size_t>(axes.size(), 1)) {
    return FailWith(absl::StrCat("roll takes a shift for each axis, which x has, or one shift alone, got shifts [",
                                 absl::StrJoin(shifts, ", "), "] and axes [", absl::StrJoin(axes, ", "), "] for ",
                                 x.spec().ToString()),
                    x.shape());
  }
  if (axes.empty()) return reshape(RolledAlong(reshape(x, {x.size()}), shifts[0], 0), x.shape());
  Tensor y = x;
  for (std::size_t i = 0; i < axes.size(); ++i) y = RolledAlong(y, shifts[i], axes[i]);
  return y;
}

Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis) {
  if (repeats < 1 || (axis && !HasAxis(x, *axis))) {
    return FailWith(absl::StrCat("repeat_interleave takes 1 repeat or more and an axis that x has, got ", repeats,
                                 axis ? absl::StrCat(" and axis ", *axis) : "", " for ", x.spec().ToString()),
                    x.shape());
  }
  const Tensor rows = axis ? x : reshape(x, {x.size()});
  const std::int64_t place = axis ? (*axis + x.rank()) % x.rank() : 0;
  Shape source = rows.shape(), stretched = source, result = source;
  source.insert(source.begin() + place + 1, 1);
  stretched.insert(stretched.begin() + place + 1, repeats);
  const Tensor stretch = broadcast_to(reshape(rows, source), stretched);
  if (!stretch.status().ok()) return stretch;
  result[static_cast<std::size_t>(place)] *= repeats;
  return reshape(stretch, result);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  if (a.rank() != 1 || b.rank() != 1) {
    return FailWith(
        absl::StrCat("outer takes two tensors of rank 1, got ", a.spec().ToString(), " and ", b.spec().ToString()),
        {1, 1});
  }
  return reshape(a, {a.dim(0), 1}) * reshape(b, {1, b.dim(0)});
}

Tensor dot(const Tensor& a, const Tensor& b) {
  if (a.rank() != 1 || a.shape() != b.shape()) {
    return FailWith(absl::StrCat("dot takes two tensors of rank 1 and one extent, got ", a.spec().ToString(), " and ",
                                 b.spec().ToString()),
                    {});
  }
  return reshape(matmul(reshape(a, {1, a.dim(0)}), reshape(b, {b.dim(0), 1})), {});
}

Tensor diag(const Tensor& x) {
  if (x.rank() == 1) {
    const std::int64_t count = x.dim(0);
    return where(Diagonal(count, count), reshape(x, {1, count}), 0);
  }
  if (x.rank() != 2) {
    return FailWith(absl::StrCat("diag takes a tensor of rank 1 or 2, got ", x.spec().ToString()), {1});
  }
  // Element i of the diagonal is element i * (columns + 1) of the rows.
  const std::int64_t columns = x.dim(1), count = std::min(x.dim(0), columns);
  return gather(reshape(x, {x.size()}), arange(0, (count - 1) * (columns + 1) + 1, columns + 1));
}

Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns, DType dtype) {
  const std::int64_t width = columns.value_or(rows);
  if (rows < 1 || width < 1) {
    return FailWith(absl::StrCat("eye takes extents of 1 or more, got [", rows, ", ", width, "]"), {1, 1});
  }
  return where(Diagonal(rows, width), ops::Fill(dtype, {}, 1), ops::Fill(dtype, {}, 0));
}

Tensor linspace(double start, double end, std::int64_t steps) {
  const bool are_held = internal::IsFiniteInF32(start) && internal::IsFiniteInF32(end);
  if (steps < 1 || steps > (std::int64_t{1} << 24) || !are_held) {
    return FailWith(absl::StrCat("linspace takes 1 to 2^24 steps between numbers that f32 holds, got ", steps, " from ",
                                 start, " to ", end),
                    {1});
  }
  std::vector<float> values(static_cast<std::size_t>(steps), static_cast<float>(start));
  const auto last = static_cast<double>(steps - 1);
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto place = static_cast<double>(i);
    values[i] = static_cast<float>((start * (last - place) + end * place) / last);
  }
  return Tensor::From(values, {steps});
}

}  // namespace mpc
