#include "frontend/graph/adaptive_pool.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/composed_ops.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"

namespace mpc {
namespace {

// Poolings along an axis, each of which is traced: more are refused.
constexpr std::int64_t kMaxPhases = 4096;

using Pool = Tensor (*)(const Tensor& x, const Pool2dOpOptions& options);

// The windows of one axis. Every `phases` windows their places repeat, `step` elements further on.
struct Windows {
  Windows(std::int64_t in, std::int64_t out)
      : in(in), out(out), repeats(std::gcd(in, out)), phases(out / repeats), step(in / repeats) {}
  std::int64_t Start(std::int64_t window) const { return window * in / out; }
  std::int64_t Size(std::int64_t window) const { return ((window + 1) * in + out - 1) / out - Start(window); }

  std::int64_t in;
  std::int64_t out;
  std::int64_t repeats;
  std::int64_t phases;
  std::int64_t step;
};

// Pools one axis of an image, 2 or 3, to extent `out`.
Tensor PoolAxis(Pool pool, const Tensor& x, std::size_t axis, std::int64_t out) {
  const Windows windows(x.dim(static_cast<std::int64_t>(axis)), out);
  if (windows.in == out) return x;
  std::vector<Tensor> phases;
  for (std::int64_t phase = 0; phase < windows.phases; ++phase) {
    Shape starts(4, 0), sizes = x.shape();
    starts[axis] = windows.Start(phase);
    sizes[axis] = (windows.repeats - 1) * windows.step + windows.Size(phase);
    Pool2dOpOptions options{.kernel_size = {1, 1}, .stride = {1, 1}};
    options.kernel_size[axis - 2] = windows.Size(phase);
    options.stride[axis - 2] = windows.step;
    phases.push_back(pool(sizes == x.shape() ? x : slice(x, starts, sizes), options));
  }
  const auto place = static_cast<std::int64_t>(axis);
  if (windows.phases == 1) return phases[0];
  if (windows.repeats == 1) return concat(phases, place);
  Shape result = x.shape();
  result[axis] = out;
  return reshape(stack(phases, place + 1), result);
}

Tensor AdaptivePool(const char* name, Pool pool, const Tensor& x, std::vector<std::int64_t> size) {
  const bool fits =
      (size.size() == 1 || size.size() == 2) &&
      std::all_of(size.begin(), size.end(), [](std::int64_t extent) { return extent == -1 || extent > 0; });
  if (x.rank() != 4 || !fits) {
    return internal::FailWith(
        absl::StrCat(name,
                     " takes an image [N, C, H, W] and one or two sizes, each 1 or more, or -1 for the extent of "
                     "the image; got ",
                     x.spec().ToString(), " and sizes [", absl::StrJoin(size, ", "), "]"),
        {1, 1, 1, 1});
  }
  const std::int64_t height = size.front() == -1 ? x.dim(2) : size.front();
  const std::int64_t width = size.back() == -1 ? x.dim(3) : size.back();
  if (x.dim(2) % height == 0 && x.dim(3) % width == 0) {
    return pool(x, {.kernel_size = {x.dim(2) / height, x.dim(3) / width}});
  }
  for (const auto& [in, out] : {std::pair(x.dim(2), height), std::pair(x.dim(3), width)}) {
    if (out / std::gcd(in, out) <= kMaxPhases) continue;
    return internal::FailWith(
        absl::StrCat(name, " from an extent of ", in, " to ", out, " takes ", out / std::gcd(in, out),
                     " poolings, and at most ", kMaxPhases, " are allowed"),
        x.shape());
  }
  // Rows first, so that the first of equal maxima in row-major order wins.
  return PoolAxis(pool, PoolAxis(pool, x, 3, width), 2, height);
}

}  // namespace

Tensor adaptive_avg_pool2d(const Tensor& x, std::vector<std::int64_t> output_size) {
  return AdaptivePool("adaptive_avg_pool2d", avg_pool2d, x, std::move(output_size));
}

Tensor adaptive_max_pool2d(const Tensor& x, std::vector<std::int64_t> output_size) {
  return AdaptivePool("adaptive_max_pool2d", max_pool2d, x, std::move(output_size));
}

}  // namespace mpc
