// max_pool2d and avg_pool2d with their gradients, in both data formats: a thread takes one pixel of one channel, or of
// eight channels that lie together. Gradients gather: each input pixel looks through the windows that cover it, in the
// order of the results.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/fast_divisor.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/runs.h"
#include "kernels/cuda/stored_elements.h"
#include "kernels/known_attributes.h"
#include "kernels/pool_geometry.h"

namespace mpc::cuda {
namespace {

constexpr int kThreads = 256;

/// PoolGeometry along one axis.
struct PoolAxis {
  int kernel, stride, dilation, pad, input, output;
  FastDivisor by_stride, by_input, by_output;

  static PoolAxis Create(const Window& window, std::size_t axis) {
    const auto number = [](std::int64_t value) { return static_cast<int>(value); };
    const auto divisor = [&](std::int64_t value) { return FastDivisor::Create(std::max(number(value), 1)); };
    return {number(window.kernel[axis]),    number(window.stride[axis]), number(window.dilation[axis]),
            number(window.pad_begin[axis]), number(window.input[axis]),  number(window.output[axis]),
            divisor(window.stride[axis]),   divisor(window.input[axis]), divisor(window.output[axis])};
  }

  /// The first input position of a window; in the padding it is negative.
  __device__ int Start(int position) const { return position * stride - pad; }
  __device__ bool Contains(int at) const { return at >= 0 && at < input; }

  /// Results [begin, end) whose windows span input position `at`.
  __device__ int CoverBegin(int at) const {
    const int first = at + pad - (kernel - 1) * dilation;
    return first <= 0 ? 0 : by_stride.Quotient(first - 1) + 1;
  }
  __device__ int CoverEnd(int at) const {
    const int end = by_stride.Quotient(at + pad) + 1;
    return end < output ? end : output;
  }
  /// Whether the window of result `position`, one of those, reads `at`: dilation leaves positions out.
  __device__ bool Reads(int position, int at) const { return dilation == 1 || (at - Start(position)) % dilation == 0; }

  /// The index of input position `at` within the window of result `position`, which reads it. 0 is the window's first
  /// position.
  __device__ int Within(int position, int at) const {
    const int distance = at - Start(position);
    return dilation == 1 ? distance : distance / dilation;
  }

  /// Positions of a window that lie inside the input.
  __device__ int CountInside(int position) const {
    int count = 0;
    for (int u = 0; u < kernel; ++u) count += Contains(Start(position) + u * dilation) ? 1 : 0;
    return count;
  }
};

/// The images of one kernel.
struct Pool {
  PoolAxis rows, columns;
  std::int64_t outer, inner;
  FastDivisor by_inner;

  /// Errors: UNIMPLEMENTED for 2^31 pixels of an image.
  static absl::StatusOr<Pool> Create(const KernelSpec& spec, const Shape& image) {
    absl::StatusOr<PoolGeometry> geometry = PoolGeometry::Create(spec.attributes, image);
    if (!geometry.ok()) return geometry.status();
    const Window& window = geometry->window;
    const std::int64_t pixels = NumElements({window.input[0] + window.pad_begin[0] + window.pad_end[0],
                                             window.input[1] + window.pad_begin[1] + window.pad_end[1]});
    if (pixels > std::numeric_limits<std::int32_t>::max()) {
      return absl::UnimplementedError(absl::StrCat("mpc.", spec.name,
                                                   " on CUDA takes images of less than 2^31 pixels, ",
                                                   "padding included; got ", ShapeToString(image)));
    }
    constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
    return Pool{PoolAxis::Create(window, 0), PoolAxis::Create(window, 1), geometry->outer, geometry->inner,
                FastDivisor::Create(static_cast<int>(std::clamp<std::int64_t>(geometry->inner, 1, kLargest)))};
  }

  bool vectors() const { return inner % kVector == 0; }
  MPC_HOST_DEVICE std::int64_t input_image() const {
    return static_cast<std::int64_t>(rows.input) * columns.input * inner;
  }
  MPC_HOST_DEVICE std::int64_t output_image() const {
    return static_cast<std::int64_t>(rows.output) * columns.output * inner;
  }

  /// The divisor of a window's sum.
  __device__ float Count(bool include_padding, int row, int column) const {
    if (include_padding) return static_cast<float>(rows.kernel * columns.kernel);
    const int inside = rows.CountInside(row) * columns.CountInside(column);
    return static_cast<float>(inside < 1 ? 1 : inside);
  }
};

/// A thread's pixel, and the first channel of its run.
struct PoolPlace {
  std::int64_t image, channel;
  int row, column;

  /// Element `index` of the images whose rows and columns are divided by `rows` and `columns`.
  __device__ static PoolPlace Create(std::int64_t index, const FastDivisor& rows, const FastDivisor& columns,
                                     const Pool& pool) {
    if (index < std::numeric_limits<std::int32_t>::max()) {
      const int element = static_cast<int>(index);
      const int pixel = pool.by_inner.Quotient(element);
      const int line = columns.Quotient(pixel);
      const int image = rows.Quotient(line);
      return {image, element - pixel * pool.by_inner.divisor, line - image * rows.divisor,
              pixel - line * columns.divisor};
    }
    const std::int64_t pixel = index / pool.inner;
    const std::int64_t line = pixel / columns.divisor;
    const std::int64_t image = line / rows.divisor;
    return {image, index - pixel * pool.inner, static_cast<int>(line - image * rows.divisor),
            static_cast<int>(pixel - line * columns.divisor)};
  }
};

/// Indices that lie together, int8_t or int32_t.
template <typename Index, int kRun>
struct alignas(kRun * sizeof(Index) < 16 ? kRun * sizeof(Index) : 16) IndexRun {
  Index values[kRun];
};

/// Calls visit(first element) for this thread's runs of `elements`.
template <int kRun, typename Visit>
__device__ __forceinline__ void ForEachRun(std::int64_t elements, const Visit& visit) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x * kRun;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kRun;
  for (std::int64_t element = first; element < elements; element += step) visit(element);
}

/// Calls visit(elements of x, position within the window) for the pixels under a window, in row-major order. Several
/// pixels are loaded before the first is visited: as many as leave a thread its registers.
template <int kRun, typename Visit>
__device__ __forceinline__ void VisitWindow(const Pool& pool, const PoolPlace& place, const Source& x,
                                            const Visit& visit) {
  constexpr int kTogether = kRun == 1 ? 4 : 2;
  const std::int64_t base = place.image * pool.input_image() + place.channel;
  const int taps = pool.rows.kernel * pool.columns.kernel;
  int u = 0, v = 0;
  for (int first = 0; first < taps; first += kTogether) {
    StoredElements<kRun> stored[kTogether];
    bool inside[kTogether];
    MPC_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const int row = pool.rows.Start(place.row) + u * pool.rows.dilation;
      const int column = pool.columns.Start(place.column) + v * pool.columns.dilation;
      inside[i] = first + i < taps && pool.rows.Contains(row) && pool.columns.Contains(column);
      const int pixel = row * pool.columns.input + column;
      if (inside[i]) stored[i] = LoadStored<kRun>(x, base + pixel * pool.inner);
      if (++v == pool.columns.kernel) {
        v = 0;
        ++u;
      }
    }
    MPC_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      if (!inside[i]) continue;
      float values[kRun];
      WidenStored<kRun>(x, stored[i], values);
      visit(values, first + i);
    }
  }
}

/// Calls visit(element of y, row, column) for the results that read an input pixel, in row-major order.
template <typename Visit>
__device__ __forceinline__ void VisitReaders(const Pool& pool, const PoolPlace& place, const Visit& visit) {
  const std::int64_t base = place.image * pool.output_image() + place.channel;
  const int row_end = pool.rows.CoverEnd(place.row);
  const int column_end = pool.columns.CoverEnd(place.column);
  for (int i = pool.rows.CoverBegin(place.row); i < row_end; ++i) {
    if (!pool.rows.Reads(i, place.row)) continue;
    for (int j = pool.columns.CoverBegin(place.column); j < column_end; ++j) {
      if (!pool.columns.Reads(j, place.column)) continue;
      visit(base + (i * pool.columns.output + j) * pool.inner, i, j);
    }
  }
}

/// Either of y and indices may have no data.
template <typename Index, int kRun>
__global__ void __launch_bounds__(kThreads, 4) MaxPoolKernel(Pool pool, Source x, Sink y, Index* indices) {
  AwaitEarlierLaunches();
  ForEachRun<kRun>(pool.outer * pool.output_image(), [&](std::int64_t element) {
    const PoolPlace place = PoolPlace::Create(element, pool.rows.by_output, pool.columns.by_output, pool);
    float largest[kRun];
    int winners[kRun];  // wider than Index may be: a window of any size is searched where indices have no data
    for (int k = 0; k < kRun; ++k) {
      largest[k] = -std::numeric_limits<float>::infinity();
      winners[k] = -1;
    }
    VisitWindow<kRun>(pool, place, x, [&](const float(&candidates)[kRun], int position) {
      for (int k = 0; k < kRun; ++k) {
        // The first of equals stays; the first NaN wins; anything beats "nothing yet", even -inf.
        const float candidate = candidates[k];
        const float current = largest[k];
        const bool wins = candidate > current || (candidate != candidate && current == current) || winners[k] < 0;
        largest[k] = wins ? candidate : current;
        winners[k] = wins ? position : winners[k];
      }
    });
    StoreRun<kRun>(y, element, largest);
    if (indices == nullptr) return;
    IndexRun<Index, kRun> narrowed;
    for (int k = 0; k < kRun; ++k) narrowed.values[k] = static_cast<Index>(winners[k]);
    *reinterpret_cast<IndexRun<Index, kRun>*>(indices + element) = narrowed;
  });
}

template <typename Index, int kRun>
__global__ void __launch_bounds__(kThreads, 4) MaxPoolGradKernel(Pool pool, Source dy, const Index* indices, Sink dx) {
  AwaitEarlierLaunches();
  ForEachRun<kRun>(pool.outer * pool.input_image(), [&](std::int64_t element) {
    const PoolPlace place = PoolPlace::Create(element, pool.rows.by_input, pool.columns.by_input, pool);
    float sums[kRun] = {};
    VisitReaders(pool, place, [&](std::int64_t at, int row, int column) {
      const int position =
          pool.rows.Within(row, place.row) * pool.columns.kernel + pool.columns.Within(column, place.column);
      const IndexRun<Index, kRun> winners = *reinterpret_cast<const IndexRun<Index, kRun>*>(indices + at);
      float cotangents[kRun];
      LoadRun<kRun>(dy, at, cotangents);
      for (int k = 0; k < kRun; ++k) sums[k] = winners.values[k] == position ? sums[k] + cotangents[k] : sums[k];
    });
    StoreRun<kRun>(dx, element, sums);
  });
}

template <int kRun>
__global__ void __launch_bounds__(kThreads, 4) AvgPoolKernel(Pool pool, bool include_padding, Source x, Sink y) {
  AwaitEarlierLaunches();
  ForEachRun<kRun>(pool.outer * pool.output_image(), [&](std::int64_t element) {
    const PoolPlace place = PoolPlace::Create(element, pool.rows.by_output, pool.columns.by_output, pool);
    float sums[kRun] = {};
    VisitWindow<kRun>(pool, place, x, [&](const float(&values)[kRun], int) {
      for (int k = 0; k < kRun; ++k) sums[k] += values[k];
    });
    const float count = pool.Count(include_padding, place.row, place.column);
    for (int k = 0; k < kRun; ++k) sums[k] /= count;
    StoreRun<kRun>(y, element, sums);
  });
}

template <int kRun>
__global__ void __launch_bounds__(kThreads, 4) AvgPoolGradKernel(Pool pool, bool include_padding, Source dy, Sink dx) {
  AwaitEarlierLaunches();
  ForEachRun<kRun>(pool.outer * pool.input_image(), [&](std::int64_t element) {
    const PoolPlace place = PoolPlace::Create(element, pool.rows.by_input, pool.columns.by_input, pool);
    float sums[kRun] = {};
    VisitReaders(pool, place, [&](std::int64_t at, int row, int column) {
      const float count = pool.Count(include_padding, row, column);
      float cotangents[kRun];
      LoadRun<kRun>(dy, at, cotangents);
      for (int k = 0; k < kRun; ++k) sums[k] += cotangents[k] / count;
    });
    StoreRun<kRun>(dx, element, sums);
  });
}

/// A thread for each run of `elements`. Where these would not fill the multiprocessors of an H200, blocks are small:
/// more multiprocessors share the work.
template <typename... Parameters, typename... Arguments>
absl::Status LaunchRuns(LaunchQueue& queue, const Pool& pool, std::int64_t elements, void (*wide)(Parameters...),
                        void (*narrow)(Parameters...), const Arguments&... arguments) {
  constexpr std::int64_t kFewRuns = std::int64_t{132} * kThreads;
  const std::int64_t runs = elements / (pool.vectors() ? kVector : 1);
  LaunchShape shape;
  shape.threads = runs < kFewRuns ? kThreads / 4 : kThreads;
  shape.blocks_x = BlocksFor(runs, shape.threads);
  return launch(queue, pool.vectors() ? wide : narrow, shape, pool, arguments...);
}

template <typename Index>
absl::StatusOr<std::unique_ptr<Kernel>> CreateMaxPoolWith(const KernelSpec& spec) {
  absl::StatusOr<Pool> pool = Pool::Create(spec, spec.inputs[0].shape);
  if (!pool.ok()) return pool.status();
  return MakeKernel([pool = *pool, x = spec.inputs[0].dtype, y = spec.outputs[0].dtype,
                     has_indices = spec.outputs.size() > 1](const KernelOperands& operands, LaunchQueue& queue) {
    return LaunchRuns(queue, pool, pool.outer * pool.output_image(), &MaxPoolKernel<Index, kVector>,
                      &MaxPoolKernel<Index, 1>, Source{operands.inputs[0], x}, Sink{operands.outputs[0], y},
                      has_indices ? static_cast<Index*>(operands.outputs[1]) : nullptr);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMaxPool(const KernelSpec& spec, const KernelContext&) {
  const bool wide = spec.outputs.size() > 1 && spec.outputs[1].dtype == DType::kI32;
  return wide ? CreateMaxPoolWith<std::int32_t>(spec) : CreateMaxPoolWith<std::int8_t>(spec);
}

template <typename Index>
absl::StatusOr<std::unique_ptr<Kernel>> CreateMaxPoolGradWith(const KernelSpec& spec) {
  absl::StatusOr<Pool> pool = Pool::Create(spec, spec.outputs[0].shape);
  if (!pool.ok()) return pool.status();
  return MakeKernel([pool = *pool, dy = spec.inputs[0].dtype, dx = spec.outputs[0].dtype](
                        const KernelOperands& operands, LaunchQueue& queue) {
    return LaunchRuns(queue, pool, pool.outer * pool.input_image(), &MaxPoolGradKernel<Index, kVector>,
                      &MaxPoolGradKernel<Index, 1>, Source{operands.inputs[0], dy},
                      static_cast<const Index*>(operands.inputs[1]), Sink{operands.outputs[0], dx});
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMaxPoolGrad(const KernelSpec& spec, const KernelContext&) {
  return spec.inputs[1].dtype == DType::kI32 ? CreateMaxPoolGradWith<std::int32_t>(spec)
                                             : CreateMaxPoolGradWith<std::int8_t>(spec);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAvgPool(const KernelSpec& spec, const KernelContext&) {
  absl::StatusOr<Pool> pool = Pool::Create(spec, spec.inputs[0].shape);
  if (!pool.ok()) return pool.status();
  return MakeKernel([pool = *pool, x = spec.inputs[0].dtype, y = spec.outputs[0].dtype,
                     include_padding = spec.attributes.Get(attribute::kCountIncludePad)](const KernelOperands& operands,
                                                                                         LaunchQueue& queue) {
    return LaunchRuns(queue, pool, pool.outer * pool.output_image(), &AvgPoolKernel<kVector>, &AvgPoolKernel<1>,
                      include_padding, Source{operands.inputs[0], x}, Sink{operands.outputs[0], y});
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAvgPoolGrad(const KernelSpec& spec, const KernelContext&) {
  absl::StatusOr<Pool> pool = Pool::Create(spec, spec.outputs[0].shape);
  if (!pool.ok()) return pool.status();
  return MakeKernel([pool = *pool, dy = spec.inputs[0].dtype, dx = spec.outputs[0].dtype,
                     include_padding = spec.attributes.Get(attribute::kCountIncludePad)](const KernelOperands& operands,
                                                                                         LaunchQueue& queue) {
    return LaunchRuns(queue, pool, pool.outer * pool.input_image(), &AvgPoolGradKernel<kVector>, &AvgPoolGradKernel<1>,
                      include_padding, Source{operands.inputs[0], dy}, Sink{operands.outputs[0], dx});
  });
}

}  // namespace

void RegisterPooling(Registry& registry) {
  registry.Add("max_pool2d", CreateMaxPool);
  registry.Add("max_pool2d_grad", CreateMaxPoolGrad);
  registry.Add("avg_pool2d", CreateAvgPool);
  registry.Add("avg_pool2d_grad", CreateAvgPoolGrad);
}

}  // namespace mpc::cuda
