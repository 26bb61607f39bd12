// max_pool2d and max_pool2d_grad for NCHW and NHWC, any floating storage type. The gradient follows the saved indices;
// an image (NCHW: a plane) is one task, so no two tasks write one element.
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/narrow_max_pool.h"
#include "kernels/cpu/pooling.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

// The largest values so far and where in their windows they lie; -1 where a window has seen nothing but padding.
template <typename Index>
struct MaximumTile {
  MaximumTile(Sink y, Index* indices, const PoolTileShape& shape) : y(y), indices(indices), shape(shape) {
    std::fill_n(largest, shape.padded_size(), -std::numeric_limits<float>::infinity());
    std::fill_n(winner, shape.padded_size(), -1);
  }

  template <typename Length, typename Stride>
  void Add(std::int64_t position, Length length, const float* values, Stride stride, std::int64_t element) {
    float* best = largest + position;
    std::int32_t* from = winner + position;
    const std::int32_t here = static_cast<std::int32_t>(element);
#pragma omp simd
    for (std::int64_t i = 0; i < length; ++i) {
      const float candidate = values[i * stride];
      const float current = best[i];
      // The first of equals stays; the first NaN wins; anything beats "nothing yet", even -inf.
      const bool wins = (candidate > current) | ((candidate != candidate) & (current == current)) | (from[i] < 0);
      best[i] = wins ? candidate : current;
      from[i] = wins ? here : from[i];
    }
  }

  void Finish(std::int64_t offset) {
    CompactRuns(largest, shape.columns, shape.pitch, shape.run);
    CompactRuns(winner, shape.columns, shape.pitch, shape.run);
    if (y.data != nullptr) StoreFloats(y.dtype, largest, y.data, offset, shape.size());
    if (indices == nullptr) return;
    Index* target = indices + offset;
    for (std::int64_t i = 0; i < shape.size(); ++i) target[i] = static_cast<Index>(winner[i]);
  }

  Sink y;
  Index* indices;
  PoolTileShape shape;
  alignas(64) float largest[kBlock];
  alignas(64) std::int32_t winner[kBlock];
};

template <typename Index>
std::unique_ptr<Kernel> MakeMaxPool(const KernelSpec& spec, const PoolGeometry& geometry) {
  return *MakeKernel([geometry, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, uses_y = spec.uses(0),
                      uses_indices = spec.outputs.size() > 1 && spec.uses(1)](const KernelOperands& operands) {
    const Sink y{out, uses_y ? operands.outputs[0] : nullptr};
    Index* indices = uses_indices ? static_cast<Index*>(operands.outputs[1]) : nullptr;
    ForEachPoolTile(geometry, {in, operands.inputs[0]},
                    [&](const PoolTileShape& shape) { return MaximumTile<Index>(y, indices, shape); });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMaxPool(const KernelSpec& spec) {
  absl::StatusOr<PoolGeometry> geometry = PoolGeometry::Create(spec.attributes, spec.inputs[0].shape);
  if (!geometry.ok()) return geometry.status();
  if (std::unique_ptr<Kernel> narrow = MakeNarrowMaxPool(spec, *geometry)) return narrow;
  const bool wide = spec.outputs.size() > 1 && spec.outputs[1].dtype == DType::kI32;
  return wide ? MakeMaxPool<std::int32_t>(spec, *geometry) : MakeMaxPool<std::int8_t>(spec, *geometry);
}

// The pixels of an image that windows send gradients to.
class WindowTargets {
 public:
  /// The first pixel of a result's window, which may lie in the padding.
  struct Corner {
    std::int64_t row, column;
    std::int64_t pixel;  ///< row * width + column
    bool whole;          ///< the window lies inside the image
  };

  explicit WindowTargets(const PoolGeometry& geometry) : window_(geometry.window) {
    for (std::int64_t u = 0; u < window_.kernel[0]; ++u) {
      for (std::int64_t v = 0; v < window_.kernel[1]; ++v) {
        distances_.push_back(u * window_.dilation[0] * window_.input[1] + v * window_.dilation[1]);
      }
    }
  }

  Corner CornerOf(std::int64_t result_row, std::int64_t result_column) const {
    const std::int64_t row = result_row * window_.stride[0] - window_.pad_begin[0];
    const std::int64_t column = result_column * window_.stride[1] - window_.pad_begin[1];
    const bool whole =
        row >= 0 && column >= 0 && row + Reach(0) < window_.input[0] && column + Reach(1) < window_.input[1];
    return {row, column, row * window_.input[1] + column, whole};
  }
  /// Whether element `index` of the window is a pixel of the image. -1, the index of a window without a winner, is
  /// none.
  bool Has(const Corner& corner, std::int64_t index) const {
    return static_cast<std::size_t>(index) < distances_.size() && (corner.whole || InImage(corner, index));
  }
  std::int64_t PixelOf(const Corner& corner, std::int64_t index) const {
    return corner.pixel + distances_[static_cast<std::size_t>(index)];
  }

 private:
  std::int64_t Reach(std::size_t axis) const { return (window_.kernel[axis] - 1) * window_.dilation[axis]; }
  bool InImage(const Corner& corner, std::int64_t index) const {
    const std::int64_t row = corner.row + index / window_.kernel[1] * window_.dilation[0];
    const std::int64_t column = corner.column + index % window_.kernel[1] * window_.dilation[1];
    return row >= 0 && row < window_.input[0] && column >= 0 && column < window_.input[1];
  }

  Window window_;
  std::vector<std::int64_t> distances_;
};

// Windows that share no pixel: every dx element has one cotangent or none, and bits are copied.
template <typename Word, typename Index>
void ScatterDisjoint(const PoolGeometry& geometry, const WindowTargets& targets, const Word* dy, const Index* indices,
                     Word* dx) {
  const std::int64_t inner = geometry.inner;
  const std::int64_t rows = geometry.window.output[0], columns = geometry.window.output[1];
  ParallelFor(geometry.outer, geometry.outer * geometry.input_image(), [&](std::int64_t image) {
    Word* target = dx + image * geometry.input_image();
    std::memset(target, 0, static_cast<std::size_t>(geometry.input_image()) * sizeof(Word));
    std::int64_t element = image * geometry.output_image();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const WindowTargets::Corner corner = targets.CornerOf(row, column);
        for (std::int64_t c = 0; c < inner; ++c, ++element) {
          const Index index = indices[element];
          if (targets.Has(corner, index)) target[targets.PixelOf(corner, index) * inner + c] = dy[element];
        }
      }
    }
  });
}

// Windows that overlap: cotangents are added in f32, in `sums` (dx itself where it is f32).
template <typename Index>
void ScatterAdd(const PoolGeometry& geometry, const WindowTargets& targets, Source dy, const Index* indices,
                float* sums, Sink dx) {
  const std::int64_t inner = geometry.inner;
  const std::int64_t size = geometry.input_image();
  const std::int64_t rows = geometry.window.output[0], columns = geometry.window.output[1];
  const std::int64_t line = columns * inner;
  ParallelFor(geometry.outer, geometry.outer * size, [&](std::int64_t image) {
    float* target = sums + image * size;
    std::fill_n(target, size, 0.0f);
    BlockBuffer buffer;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t base = image * geometry.output_image() + row * line;
      for (std::int64_t start = 0; start < line; start += kBlock) {
        const std::int64_t length = std::min(kBlock, line - start);
        const float* values = dy.Load(base + start, length, buffer.values);
        std::int64_t c = start % inner, column = start / inner;
        WindowTargets::Corner corner = targets.CornerOf(row, column);
        for (std::int64_t i = 0; i < length; ++i) {
          const Index index = indices[base + start + i];
          if (targets.Has(corner, index)) target[targets.PixelOf(corner, index) * inner + c] += values[i];
          if (++c < inner) continue;
          c = 0;
          corner = targets.CornerOf(row, ++column);
        }
      }
    }
    dx.Commit(image * size, size, target);
  });
}

template <typename Index>
absl::StatusOr<std::unique_ptr<Kernel>> MakeMaxPoolGrad(const KernelSpec& spec, const PoolGeometry& geometry) {
  const DType dy_type = spec.inputs[0].dtype;
  const DType dx_type = spec.outputs[0].dtype;
  if (geometry.disjoint() && dy_type == dx_type) {
    return MakeKernel(
        [geometry, targets = WindowTargets(geometry), wide = dx_type == DType::kF32](const KernelOperands& operands) {
          const Index* indices = static_cast<const Index*>(operands.inputs[1]);
          if (wide) {
            ScatterDisjoint(geometry, targets, static_cast<const std::uint32_t*>(operands.inputs[0]), indices,
                            static_cast<std::uint32_t*>(operands.outputs[0]));
          } else {
            ScatterDisjoint(geometry, targets, static_cast<const std::uint16_t*>(operands.inputs[0]), indices,
                            static_cast<std::uint16_t*>(operands.outputs[0]));
          }
        });
  }
  const std::size_t scratch =
      dx_type == DType::kF32 ? 0 : static_cast<std::size_t>(spec.outputs[0].num_elements()) * sizeof(float);
  return MakeKernel(
      [geometry, targets = WindowTargets(geometry), dy_type, dx_type](const KernelOperands& operands) {
        void* sums = dx_type == DType::kF32 ? operands.outputs[0] : operands.workspace;
        ScatterAdd(geometry, targets, {dy_type, operands.inputs[0]}, static_cast<const Index*>(operands.inputs[1]),
                   static_cast<float*>(sums), {dx_type, operands.outputs[0]});
      },
      scratch);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateMaxPoolGrad(const KernelSpec& spec) {
  absl::StatusOr<PoolGeometry> geometry = PoolGeometry::Create(spec.attributes, spec.outputs[0].shape);
  if (!geometry.ok()) return geometry.status();
  if (std::unique_ptr<Kernel> narrow = MakeNarrowMaxPoolGrad(spec, *geometry)) return narrow;
  return spec.inputs[1].dtype == DType::kI32 ? MakeMaxPoolGrad<std::int32_t>(spec, *geometry)
                                             : MakeMaxPoolGrad<std::int8_t>(spec, *geometry);
}

}  // namespace

void RegisterMaxPool(Registry& registry) {
  registry.Add("max_pool2d", CreateMaxPool);
  registry.Add("max_pool2d_grad", CreateMaxPoolGrad);
}

}  // namespace mpc::cpu
