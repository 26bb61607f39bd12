// avg_pool2d and avg_pool2d_grad for NCHW and NHWC, any floating storage type; sums in f32.
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/pooling.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

// Window positions along `axis` that lie inside the image, for output position `position`.
std::int64_t InsideExtent(const Window& window, std::size_t axis, std::int64_t position) {
  const std::int64_t start = position * window.stride[axis] - window.pad_begin[axis];
  std::int64_t inside = 0;
  for (std::int64_t u = 0; u < window.kernel[axis]; ++u) {
    const std::int64_t at = start + u * window.dilation[axis];
    if (at >= 0 && at < window.input[axis]) ++inside;
  }
  return inside;
}

// The divisor of the sum of the window at (row, column).
float WindowCount(const Window& window, bool include_padding, std::int64_t row, std::int64_t column) {
  if (include_padding) return static_cast<float>(window.kernel[0] * window.kernel[1]);
  const std::int64_t inside = InsideExtent(window, 0, row) * InsideExtent(window, 1, column);
  return static_cast<float>(std::max<std::int64_t>(inside, 1));
}

struct MeanTile {
  MeanTile(const Window& window, bool include_padding, Sink y, const PoolTileShape& shape)
      : window(window), include_padding(include_padding), y(y), shape(shape) {
    std::fill_n(sums, shape.padded_size(), 0.0f);
  }

  template <typename Length, typename Stride>
  void Add(std::int64_t position, Length length, const float* values, Stride stride, std::int64_t) {
    float* target = sums + position;
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i) target[i] += values[i * stride];
  }

  void Finish(std::int64_t offset) {
    CompactRuns(sums, shape.columns, shape.pitch, shape.run);
    for (std::int64_t j = 0; j < shape.columns; ++j) {
      const float count = WindowCount(window, include_padding, shape.row, shape.column + j);
      for (std::int64_t i = j * shape.run; i < (j + 1) * shape.run; ++i) sums[i] /= count;
    }
    StoreFloats(y.dtype, sums, y.data, offset, shape.size());
  }

  const Window& window;
  bool include_padding;
  Sink y;
  PoolTileShape shape;
  alignas(64) float sums[kBlock];
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateAvgPool(const KernelSpec& spec) {
  absl::StatusOr<PoolGeometry> geometry = PoolGeometry::Create(spec.attributes, spec.inputs[0].shape);
  if (!geometry.ok()) return geometry.status();
  return MakeKernel([geometry = *geometry, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     include_padding =
                         spec.attributes.Get(attribute::kCountIncludePad)](const KernelOperands& operands) {
    const Sink y{out, operands.outputs[0]};
    ForEachPoolTile(geometry, {in, operands.inputs[0]},
                    [&](const PoolTileShape& shape) { return MeanTile(geometry.window, include_padding, y, shape); });
  });
}

// Adds `share`, of output pixel (row, column) of one image and `run` channels from `channel` on, to every input pixel
// of its window.
void SpreadShare(const PoolGeometry& geometry, std::int64_t row, std::int64_t column, std::int64_t channel,
                 std::int64_t run, const float* share, float* image) {
  const Window& window = geometry.window;
  for (std::int64_t u = 0; u < window.kernel[0]; ++u) {
    const std::int64_t input_row = row * window.stride[0] - window.pad_begin[0] + u * window.dilation[0];
    if (input_row < 0 || input_row >= window.input[0]) continue;
    for (std::int64_t v = 0; v < window.kernel[1]; ++v) {
      const std::int64_t input_column = column * window.stride[1] - window.pad_begin[1] + v * window.dilation[1];
      if (input_column < 0 || input_column >= window.input[1]) continue;
      float* target = image + (input_row * window.input[1] + input_column) * geometry.inner + channel;
#pragma omp simd
      for (std::int64_t i = 0; i < run; ++i) target[i] += share[i];
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAvgPoolGrad(const KernelSpec& spec) {
  absl::StatusOr<PoolGeometry> geometry = PoolGeometry::Create(spec.attributes, spec.outputs[0].shape);
  if (!geometry.ok()) return geometry.status();
  const DType dx_type = spec.outputs[0].dtype;
  const auto run = [geometry = *geometry, dy_type = spec.inputs[0].dtype, dx_type,
                    include_padding =
                        spec.attributes.Get(attribute::kCountIncludePad)](const KernelOperands& operands) {
    const Source dy{dy_type, operands.inputs[0]};
    const Sink dx{dx_type, operands.outputs[0]};
    float* sums = static_cast<float*>(dx_type == DType::kF32 ? operands.outputs[0] : operands.workspace);
    const std::int64_t size = geometry.input_image();
    const std::int64_t width = geometry.window.output[1];
    ParallelFor(geometry.outer, geometry.outer * size, [&](std::int64_t image) {
      float* target = sums + image * size;
      std::fill_n(target, size, 0.0f);
      BlockBuffer buffer, share;
      for (std::int64_t pixel = 0; pixel < geometry.window.output[0] * width; ++pixel) {
        const float count = WindowCount(geometry.window, include_padding, pixel / width, pixel % width);
        for (std::int64_t channel = 0; channel < geometry.inner; channel += kBlock) {
          const std::int64_t length = std::min(kBlock, geometry.inner - channel);
          const float* values =
              dy.Load(image * geometry.output_image() + pixel * geometry.inner + channel, length, buffer.values);
          for (std::int64_t i = 0; i < length; ++i) share.values[i] = values[i] / count;
          SpreadShare(geometry, pixel / width, pixel % width, channel, length, share.values, target);
        }
      }
      dx.Commit(image * size, size, target);
    });
  };
  const std::size_t scratch =
      dx_type == DType::kF32 ? 0 : static_cast<std::size_t>(spec.outputs[0].num_elements()) * sizeof(float);
  return MakeKernel(run, scratch);
}

}  // namespace

void RegisterAvgPool(Registry& registry) {
  registry.Add("avg_pool2d", CreateAvgPool);
  registry.Add("avg_pool2d_grad", CreateAvgPoolGrad);
}

}  // namespace mpc::cpu
