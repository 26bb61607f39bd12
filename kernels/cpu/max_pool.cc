// max_pool2d and max_pool2d_grad for NCHW and NHWC, any floating storage type. The gradient follows the saved indices;
// an image (NCHW: a plane) is one task, so no two tasks write one element.
#include <cstring>
#include <limits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/narrow_max_pool.h"
#include "kernels/cpu/pooling.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

// The largest values so far and the pixels they come from; -1 where a window has seen nothing but padding.
struct MaximumTile {
  MaximumTile(Sink y, std::int32_t* indices, const PoolTileShape& shape) : y(y), indices(indices), shape(shape) {
    std::fill_n(largest, shape.padded_size(), -std::numeric_limits<float>::infinity());
    std::fill_n(winner, shape.padded_size(), -1);
  }

  template <typename Length, typename Stride>
  void Add(std::int64_t position, Length length, const float* values, Stride stride, std::int64_t pixel,
           std::int64_t pixel_step) {
    float* best = largest + position;
    std::int32_t* from = winner + position;
    const std::int32_t first = static_cast<std::int32_t>(pixel);
    const std::int32_t step = static_cast<std::int32_t>(pixel_step);
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i) {
      const float candidate = values[i * stride];
      const float current = best[i];
      // The first of equals stays; the first NaN wins; anything beats "nothing yet", even -inf.
      const bool wins = (candidate > current) | ((candidate != candidate) & (current == current)) | (from[i] < 0);
      best[i] = wins ? candidate : current;
      from[i] = wins ? first + static_cast<std::int32_t>(i) * step : from[i];
    }
  }

  void Finish(std::int64_t offset) {
    CompactRuns(largest, shape.columns, shape.pitch, shape.run);
    CompactRuns(winner, shape.columns, shape.pitch, shape.run);
    if (y.data != nullptr) StoreFloats(y.dtype, largest, y.data, offset, shape.size());
    if (indices != nullptr) std::copy_n(winner, shape.size(), indices + offset);
  }

  Sink y;
  std::int32_t* indices;
  PoolTileShape shape;
  alignas(64) float largest[kBlock];
  alignas(64) std::int32_t winner[kBlock];
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateMaxPool(const KernelSpec& spec) {
  absl::StatusOr<PoolGeometry> geometry = PoolGeometry::Create(spec.attributes, spec.inputs[0].shape);
  if (!geometry.ok()) return geometry.status();
  if (std::unique_ptr<Kernel> narrow = MakeNarrowMaxPool(spec, *geometry)) return narrow;
  return MakeKernel([geometry = *geometry, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     uses_y = spec.uses(0),
                     uses_indices = spec.outputs.size() > 1 && spec.uses(1)](const KernelOperands& operands) {
    const Sink y{out, uses_y ? operands.outputs[0] : nullptr};
    std::int32_t* indices = uses_indices ? static_cast<std::int32_t*>(operands.outputs[1]) : nullptr;
    ForEachPoolTile(geometry, {in, operands.inputs[0]},
                    [&](const PoolTileShape& shape) { return MaximumTile(y, indices, shape); });
  });
}

// Windows that share no pixel: every dx element has one cotangent or none, and bits are copied.
template <typename Word>
void ScatterDisjoint(const PoolGeometry& geometry, const Word* dy, const std::int32_t* indices, Word* dx) {
  const std::int64_t inner = geometry.inner;
  const std::int64_t pixels = geometry.window.output[0] * geometry.window.output[1];
  ParallelFor(geometry.outer, geometry.outer * geometry.input_image(), [&](std::int64_t image) {
    Word* target = dx + image * geometry.input_image();
    std::memset(target, 0, static_cast<std::size_t>(geometry.input_image()) * sizeof(Word));
    const std::int64_t base = image * geometry.output_image();
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::int64_t c = 0; c < inner; ++c) {
        const std::int64_t element = base + pixel * inner + c;
        if (indices[element] >= 0) target[indices[element] * inner + c] = dy[element];
      }
    }
  });
}

// Windows that overlap: cotangents are added in f32, in `sums` (dx itself where it is f32).
void ScatterAdd(const PoolGeometry& geometry, Source dy, const std::int32_t* indices, float* sums, Sink dx) {
  const std::int64_t inner = geometry.inner;
  const std::int64_t size = geometry.input_image();
  ParallelFor(geometry.outer, geometry.outer * size, [&](std::int64_t image) {
    float* target = sums + image * size;
    std::fill_n(target, size, 0.0f);
    BlockBuffer buffer;
    const std::int64_t base = image * geometry.output_image();
    for (std::int64_t start = 0; start < geometry.output_image(); start += kBlock) {
      const std::int64_t length = std::min(kBlock, geometry.output_image() - start);
      const float* values = dy.Load(base + start, length, buffer.values);
      std::int64_t c = start % inner;
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t winner = indices[base + start + i];
        if (winner >= 0) target[winner * inner + c] += values[i];
        if (++c == inner) c = 0;
      }
    }
    dx.Commit(image * size, size, target);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMaxPoolGrad(const KernelSpec& spec) {
  absl::StatusOr<PoolGeometry> geometry = PoolGeometry::Create(spec.attributes, spec.outputs[0].shape);
  if (!geometry.ok()) return geometry.status();
  const DType dy_type = spec.inputs[0].dtype;
  const DType dx_type = spec.outputs[0].dtype;
  if (geometry->disjoint() && dy_type == dx_type) {
    return MakeKernel([geometry = *geometry, wide = dx_type == DType::kF32](const KernelOperands& operands) {
      const std::int32_t* indices = static_cast<const std::int32_t*>(operands.inputs[1]);
      if (wide) {
        ScatterDisjoint(geometry, static_cast<const std::uint32_t*>(operands.inputs[0]), indices,
                        static_cast<std::uint32_t*>(operands.outputs[0]));
      } else {
        ScatterDisjoint(geometry, static_cast<const std::uint16_t*>(operands.inputs[0]), indices,
                        static_cast<std::uint16_t*>(operands.outputs[0]));
      }
    });
  }
  const std::size_t scratch =
      dx_type == DType::kF32 ? 0 : static_cast<std::size_t>(spec.outputs[0].num_elements()) * sizeof(float);
  return MakeKernel(
      [geometry = *geometry, dy_type, dx_type](const KernelOperands& operands) {
        void* sums = dx_type == DType::kF32 ? operands.outputs[0] : operands.workspace;
        ScatterAdd(geometry, {dy_type, operands.inputs[0]}, static_cast<const std::int32_t*>(operands.inputs[1]),
                   static_cast<float*>(sums), {dx_type, operands.outputs[0]});
      },
      scratch);
}

}  // namespace

void RegisterMaxPool(Registry& registry) {
  registry.Add("max_pool2d", CreateMaxPool);
  registry.Add("max_pool2d_grad", CreateMaxPoolGrad);
}

}  // namespace mpc::cpu
