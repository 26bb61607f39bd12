#include "kernels/cpu/narrow_conv2d.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/channel_planes.h"
#include "kernels/cpu/parallel.h"
#include "kernels/fused_activation.h"

namespace mpc::cpu {
namespace {

/// Result channels that have accumulators of their own.
constexpr int kMaxNarrow = 8;
/// Floats of one image's planes on the stack.
constexpr std::int64_t kPlaneFloats = 24 * 1024;

std::int64_t RoundUp(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

/// Planes of an image with its padding: rows x pitch a channel, readable a vector beyond the last result's window.
struct PaddedPlanes {
  std::int64_t channels, rows, pitch;      ///< padding included
  std::int64_t image_rows, image_columns;  ///< without it
  std::int64_t top, left;

  std::int64_t plane() const { return rows * pitch; }
  std::int64_t size() const { return channels * plane() + kLanes; }

  /// Fills `target` from image `image` of x.
  [[gnu::target("avx512f")]] void Fill(Source x, std::int64_t image, const ChannelPlanes& layout, float* target) const {
    std::fill_n(target, size(), 0.0f);
    BlockBuffer buffer;
    for (std::int64_t row = 0; row < image_rows; ++row) {
      for (std::int64_t column = 0; column < image_columns; column += kLanes) {
        const std::int64_t count = std::min(kLanes, image_columns - column);
        const std::int64_t offset = ((image * image_rows + row) * image_columns + column) * channels;
        const float* pixels = x.Load(offset, count * channels, buffer.values);
        float* place = target + (row + top) * pitch + left + column;
        layout.Split(pixels, count, place, plane());
      }
    }
  }
};

/// A sliding product over padded planes: y[o] = bias[o] + sum over (c, u, v) of x[c] shifted by (u, v) times
/// weight[c][u][v][o].
struct PlaneProduct {
  PaddedPlanes x;
  std::int64_t kernel_rows, kernel_columns, rows, columns;
  int out_channels;
  Activation activation = Activation::kNone;
  Sink y{};

  std::int64_t groups_of_row() const { return (columns + kLanes - 1) / kLanes; }
  std::int64_t weights() const { return x.channels * kernel_rows * kernel_columns * out_channels; }

  template <int kOut, int kAtOnce>
  [[gnu::target("avx512f")]] void Groups(const float* planes, const float* weight, const float* bias,
                                         std::int64_t image, std::int64_t first, const ChannelPlanes& layout) const {
    const float* from[kAtOnce];
    for (int g = 0; g < kAtOnce; ++g) {
      const std::int64_t group = std::min(first + g, rows * groups_of_row() - 1);
      from[g] = planes + group / groups_of_row() * x.pitch + group % groups_of_row() * kLanes;
    }
    __m512 sums[kAtOnce][kOut];
    for (int g = 0; g < kAtOnce; ++g) {
      for (int o = 0; o < kOut; ++o) sums[g][o] = _mm512_set1_ps(bias[o]);
    }
    for (std::int64_t c = 0; c < x.channels; ++c) {
      for (std::int64_t u = 0; u < kernel_rows; ++u) {
        const std::int64_t row = c * x.plane() + u * x.pitch;
        for (std::int64_t v = 0; v < kernel_columns; ++v, weight += kOut) {
          __m512 values[kAtOnce];
          for (int g = 0; g < kAtOnce; ++g) values[g] = _mm512_loadu_ps(from[g] + row + v);
          for (int o = 0; o < kOut; ++o) {
            const __m512 factor = _mm512_set1_ps(weight[o]);
            for (int g = 0; g < kAtOnce; ++g) sums[g][o] = _mm512_fmadd_ps(values[g], factor, sums[g][o]);
          }
        }
      }
    }
    for (int g = 0; g < kAtOnce && first + g < rows * groups_of_row(); ++g) {
      alignas(64) float results[kOut * kLanes];
      for (int o = 0; o < kOut; ++o) _mm512_store_ps(results + o * kLanes, sums[g][o]);
      Store(results, image, first + g, layout);
    }
  }

  void Store(float* results, std::int64_t image, std::int64_t group, const ChannelPlanes& layout) const {
    const std::int64_t row = group / groups_of_row();
    const std::int64_t column = group % groups_of_row() * kLanes;
    const std::int64_t count = std::min(kLanes, columns - column);
    const std::int64_t offset = ((image * rows + row) * columns + column) * out_channels;
    if (activation != Activation::kNone) {
      for (std::int64_t i = 0; i < out_channels * kLanes; ++i) results[i] = scalar::Activate(activation, results[i]);
    }
    BlockBuffer buffer;
    float* target = y.Target(offset, buffer.values);
    layout.Merge(results, kLanes, count, target);
    y.Commit(offset, count * out_channels, target);
  }

  template <int kOut>
  void Image(const float* planes, const float* weight, const float* bias, std::int64_t image,
             const ChannelPlanes& layout) const {
    // Accumulators, a vector of pixels each group and a factor have to fit 32 registers.
    constexpr int kAtOnce = kOut <= 4 ? 4 : (kOut <= 6 ? 4 : 3);
    for (std::int64_t first = 0; first < rows * groups_of_row(); first += kAtOnce) {
      Groups<kOut, kAtOnce>(planes, weight, bias, image, first, layout);
    }
  }
};

/// Calls function(std::integral_constant<int, n>) for 1 <= n <= kMaxNarrow.
template <typename Function, int kN = 1>
void WithConstant(int n, const Function& function) {
  if (n == kN) return function(std::integral_constant<int, kN>());
  if constexpr (kN < kMaxNarrow) WithConstant<Function, kN + 1>(n, function);
}

void RunProduct(const PlaneProduct& product, Source x, std::int64_t batch, const float* weight, const float* bias,
                const ChannelPlanes& in_layout, const ChannelPlanes& out_layout) {
  const std::int64_t work = batch * product.rows * product.columns * product.weights() / 16;
  ParallelFor(batch, work, [&](std::int64_t image) {
    alignas(64) float planes[kPlaneFloats];
    product.x.Fill(x, image, in_layout, planes);
    WithConstant(product.out_channels, [&](auto channels) {
      product.Image<decltype(channels)::value>(planes, weight, bias, image, out_layout);
    });
  });
}

PaddedPlanes PlanesFor(std::int64_t channels, std::int64_t image_rows, std::int64_t image_columns, std::int64_t top,
                       std::int64_t left, std::int64_t rows, std::int64_t columns, std::int64_t kernel_rows,
                       std::int64_t kernel_columns) {
  // The last group of a row reads 16 columns; the last vector of a row of the image is written whole.
  const std::int64_t read = RoundUp(columns, kLanes) + kernel_columns - 1;
  const std::int64_t written = left + RoundUp(image_columns, kLanes);
  return {channels,
          std::max(rows + kernel_rows - 1, top + image_rows),
          RoundUp(std::max(read, written), kLanes),
          image_rows,
          image_columns,
          top,
          left};
}

PaddedPlanes ForwardPlanes(const NarrowConvolution& c) {
  const Window& w = c.window;
  return PlanesFor(c.in_channels, w.input[0], w.input[1], w.pad_begin[0], w.pad_begin[1], w.output[0], w.output[1],
                   w.kernel[0], w.kernel[1]);
}

}  // namespace

std::optional<NarrowConvolution> NarrowConvolution::Of(const Attributes& attributes, const Shape& x,
                                                       const Shape& weight) {
  if (!HasAvx512() || attributes.GetString("data_format", "NCHW") != "NHWC" || attributes.GetInt("groups", 1) != 1) {
    return std::nullopt;
  }
  absl::StatusOr<Window> window = ResolveWindow(attributes, {x[1], x[2]}, {weight[2], weight[3]});
  if (!window.ok() || window->stride != std::array<std::int64_t, 2>{1, 1} ||
      window->dilation != std::array<std::int64_t, 2>{1, 1}) {
    return std::nullopt;
  }
  return NarrowConvolution{x[0], x[3], weight[0], *window};
}

bool NarrowConvolution::TakesForward() const {
  return out_channels <= kMaxNarrow && in_channels <= kMaxPlanes && ForwardPlanes(*this).size() <= kPlaneFloats;
}

std::unique_ptr<Kernel> MakeNarrowConv2d(const KernelSpec& spec, const NarrowConvolution& c) {
  const Window& w = c.window;
  PlaneProduct product{ForwardPlanes(c), w.kernel[0], w.kernel[1],
                       w.output[0],      w.output[1], static_cast<int>(c.out_channels)};
  product.activation = *ParseActivation(spec.attributes.GetString("activation", "none"));
  const std::size_t scratch = static_cast<std::size_t>(product.weights() + kMaxNarrow) * sizeof(float);
  return *MakeKernel(
      [c, product, x = spec.inputs[0].dtype, weight = spec.inputs[1].dtype, y = spec.outputs[0].dtype,
       bias = spec.inputs.size() > 2 ? std::optional<DType>(spec.inputs[2].dtype) : std::nullopt,
       in_layout = ChannelPlanes(static_cast<int>(c.in_channels)),
       out_layout = ChannelPlanes(static_cast<int>(c.out_channels))](const KernelOperands& operands) mutable {
        float* biases = static_cast<float*>(operands.workspace);
        float* packed = biases + kMaxNarrow;
        const std::int64_t taps = c.window.kernel[0] * c.window.kernel[1];
        const Source weights{weight, operands.inputs[1]};
        for (std::int64_t o = 0; o < c.out_channels; ++o) {
          biases[o] = bias ? Source{*bias, operands.inputs[2]}.At(o) : 0.0f;
          for (std::int64_t i = 0; i < c.in_channels * taps; ++i) {
            packed[i * c.out_channels + o] = weights.At(o * c.in_channels * taps + i);
          }
        }
        product.y = {y, operands.outputs[0]};
        RunProduct(product, {x, operands.inputs[0]}, c.batch, packed, biases, in_layout, out_layout);
      },
      scratch);
}

}  // namespace mpc::cpu
