// resize and resize_grad in both data formats: a thread takes one pixel of one channel, or of eight channels that lie
// together. Gradients gather: each pixel of dx adds what read it, columns before rows.
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/runs.h"
#include "kernels/cuda/strided.h"
#include "kernels/resize_geometry.h"

namespace mpc::cuda {
namespace {

constexpr int kThreads = 256;

/// The images of one kernel. Pixels are counted in 32 bits, which a GPU divides faster.
struct Images {
  ResizeGeometry<std::int32_t> geometry;
  // Of the images that threads write.
  Divisor height, width, inner;
  std::int64_t elements;

  /// `written` is `x` or `y`. Errors: UNIMPLEMENTED for axes whose product does not fit.
  static absl::StatusOr<Images> Create(const KernelSpec& spec, const Shape& x, const Shape& y, const Shape& written) {
    const auto wide = ResizeGeometry<std::int64_t>::Create(spec.attributes, x, y);
    for (const auto& axis : {wide.rows, wide.columns}) {
      if (axis.output > (std::numeric_limits<std::int32_t>::max() / axis.input - 2) / 2) {
        return absl::UnimplementedError(
            absl::StrCat("mpc.", spec.name, " on CUDA takes axes whose extents before and after have a product of ",
                         "at most about 2^30; got ", axis.input, " and ", axis.output));
      }
    }
    const ImageAxes axes = AxesOf(spec.attributes.Get(attribute::kDataFormat));
    return Images{ResizeGeometry<std::int32_t>::Create(spec.attributes, x, y),
                  Divisor(written[static_cast<std::size_t>(axes.height)]),
                  Divisor(written[static_cast<std::size_t>(axes.width)]), Divisor(wide.inner), NumElements(written)};
  }

  bool vectors() const { return geometry.inner % kVector == 0; }
};

/// A thread's pixel, and the first channel of its run.
struct Place {
  std::int64_t image, channel;
  std::int32_t row, column;

  __device__ __forceinline__ static Place Of(const Images& images, std::int64_t element) {
    const std::int64_t pixel = images.inner.Quotient(element);
    const std::int64_t line = images.width.Quotient(pixel);
    const std::int64_t image = images.height.Quotient(line);
    return {image, element - pixel * images.inner.value(),
            static_cast<std::int32_t>(line - image * images.height.value()),
            static_cast<std::int32_t>(pixel - line * images.width.value())};
  }
};

/// Calls visit(first element) for this thread's runs of `elements`.
template <int kRun, typename Visit>
__device__ __forceinline__ void ForEachRun(std::int64_t elements, const Visit& visit) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads * kRun;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kRun;
  for (std::int64_t element = first; element < elements; element += step) visit(element);
}

template <int kRun>
__global__ void __launch_bounds__(kThreads, 4) ResizeKernel(Images images, Source x, Sink y) {
  AwaitEarlierLaunches();
  const ResizeGeometry<std::int32_t>& geometry = images.geometry;
  ForEachRun<kRun>(images.elements, [&](std::int64_t element) {
    const Place place = Place::Of(images, element);
    const ResizeTap<std::int32_t> row = geometry.rows.TapOf(place.row);
    const ResizeTap<std::int32_t> column = geometry.columns.TapOf(place.column);
    const std::int64_t base = place.image * geometry.input_image() + place.channel;
    const std::int64_t first_row = static_cast<std::int64_t>(row.first) * geometry.columns.input;
    const std::int64_t second_row = static_cast<std::int64_t>(row.second) * geometry.columns.input;
    // A column of x between its two rows.
    const auto between = [&](std::int32_t at, float(&values)[kRun]) {
      LoadRun<kRun>(x, base + (first_row + at) * geometry.inner, values);
      if (!row.has_second()) return;
      float second[kRun];
      LoadRun<kRun>(x, base + (second_row + at) * geometry.inner, second);
      for (int k = 0; k < kRun; ++k) values[k] = row.Between(values[k], second[k]);
    };
    float values[kRun];
    between(column.first, values);
    if (column.has_second()) {
      float second[kRun];
      between(column.second, second);
      for (int k = 0; k < kRun; ++k) values[k] = column.Between(values[k], second[k]);
    }
    StoreRun<kRun>(y, element, values);
  });
}

template <int kRun>
__global__ void __launch_bounds__(kThreads, 4) ResizeGradKernel(Images images, Source dy, Sink dx) {
  AwaitEarlierLaunches();
  const ResizeGeometry<std::int32_t>& geometry = images.geometry;
  ForEachRun<kRun>(images.elements, [&](std::int64_t element) {
    const Place place = Place::Of(images, element);
    const PixelRange<std::int32_t> rows = geometry.rows.ReadersOf(place.row);
    const PixelRange<std::int32_t> columns = geometry.columns.ReadersOf(place.column);
    const std::int64_t base = place.image * geometry.output_image() + place.channel;
    float sums[kRun] = {};
    for (std::int32_t j = columns.begin; j < columns.end; ++j) {
      float row_sums[kRun] = {};
      for (std::int32_t i = rows.begin; i < rows.end; ++i) {
        const std::int64_t pixel = static_cast<std::int64_t>(i) * geometry.columns.output + j;
        const float weight = geometry.rows.WeightOf(i, place.row);
        float values[kRun];
        LoadRun<kRun>(dy, base + pixel * geometry.inner, values);
        for (int k = 0; k < kRun; ++k) row_sums[k] += weight * values[k];
      }
      const float weight = geometry.columns.WeightOf(j, place.column);
      for (int k = 0; k < kRun; ++k) sums[k] += weight * row_sums[k];
    }
    StoreRun<kRun>(dx, element, sums);
  });
}

/// A thread for each run of the images that are written.
template <typename KernelFunction>
absl::Status LaunchRuns(LaunchQueue& queue, const Images& images, KernelFunction wide, KernelFunction narrow,
                        const Source& from, const Sink& to) {
  LaunchShape shape;
  shape.threads = kThreads;
  shape.blocks_x = BlocksFor(images.elements, kThreads * (images.vectors() ? kVector : 1));
  return launch(queue, images.vectors() ? wide : narrow, shape, images, from, to);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateResize(const KernelSpec& spec, const KernelContext&) {
  const Shape &x = spec.inputs[0].shape, &y = spec.outputs[0].shape;
  absl::StatusOr<Images> images = Images::Create(spec, x, y, y);
  if (!images.ok()) return images.status();
  return MakeKernel([images = *images, from = spec.inputs[0].dtype, to = spec.outputs[0].dtype](
                        const KernelOperands& operands, LaunchQueue& queue) {
    return LaunchRuns(queue, images, &ResizeKernel<kVector>, &ResizeKernel<1>, Source{operands.inputs[0], from},
                      Sink{operands.outputs[0], to});
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateResizeGrad(const KernelSpec& spec, const KernelContext&) {
  const Shape &x = spec.outputs[0].shape, &y = spec.inputs[0].shape;
  absl::StatusOr<Images> images = Images::Create(spec, x, y, x);
  if (!images.ok()) return images.status();
  return MakeKernel([images = *images, from = spec.inputs[0].dtype, to = spec.outputs[0].dtype](
                        const KernelOperands& operands, LaunchQueue& queue) {
    return LaunchRuns(queue, images, &ResizeGradKernel<kVector>, &ResizeGradKernel<1>, Source{operands.inputs[0], from},
                      Sink{operands.outputs[0], to});
  });
}

}  // namespace

void RegisterResize(Registry& registry) {
  registry.Add("resize", CreateResize);
  registry.Add("resize_grad", CreateResizeGrad);
}

}  // namespace mpc::cuda
