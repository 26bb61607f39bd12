// In channels-last storage a row of a window is one run: `kw` pixels of few channels. Turned around, so is what one
// pixel adds to the input's gradient, and what one pixel of x meets in dy. A run fills one to three vectors.
#include <immintrin.h>

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/channel_planes.h"
#include "kernels/cpu/narrow_conv2d.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {
namespace {

/// Vectors of a run at most.
constexpr int kMaxRun = 3;
/// Rows of a window at most.
constexpr int kMaxRows = 7;
/// Floats of one image on the stack.
constexpr std::int64_t kImageFloats = 24 * 1024;
/// Groups of images whose weight gradients are summed apart.
constexpr std::int64_t kGroups = 16;

int VectorsOf(std::int64_t run) { return static_cast<int>((run + kLanes - 1) / kLanes); }

__mmask16 LanesOfLast(std::int64_t run) {
  const std::int64_t last = run - (VectorsOf(run) - 1) * kLanes;
  return static_cast<__mmask16>((1u << last) - 1u);
}

/// Calls function(std::integral_constant<int, n>) for 1 <= n <= kLast.
template <int kLast, typename Function, int kN = 1>
void WithConstant(int n, const Function& function) {
  if (n == kN) return function(std::integral_constant<int, kN>());
  if constexpr (kN < kLast) WithConstant<kLast, Function, kN + 1>(n, function);
}

/// An image with its padding, row-major, channels-last.
struct PaddedImage {
  std::int64_t rows, columns, channels;
  std::int64_t image_rows, image_columns, top, left;

  std::int64_t pitch() const { return columns * channels; }
  /// Whole vectors may be read from every pixel.
  std::int64_t size() const { return rows * pitch() + kMaxRun * kLanes; }
  std::int64_t OffsetOf(std::int64_t row) const { return (row + top) * pitch() + left * channels; }

  void Fill(Source source, std::int64_t image, float* target) const {
    std::fill_n(target, size(), 0.0f);
    const std::int64_t run = image_columns * channels;
    for (std::int64_t row = 0; row < image_rows; ++row) {
      LoadFloats(source.dtype, source.data, (image * image_rows + row) * run, run, target + OffsetOf(row));
    }
  }
};

/// x or dx, with the convolution's padding on every side.
PaddedImage InputImage(const NarrowConvolution& c) {
  const Window& w = c.window;
  return {w.output[0] + w.kernel[0] - 1,
          w.output[1] + w.kernel[1] - 1,
          c.in_channels,
          w.input[0],
          w.input[1],
          w.pad_begin[0],
          w.pad_begin[1]};
}

/// Whether the padded image covers the input, so that it can be filled from it: a window may leave its end unread.
bool CoversInput(const NarrowConvolution& c) {
  const PaddedImage image = InputImage(c);
  return image.rows >= image.top + image.image_rows && image.columns >= image.left + image.image_columns;
}

/// dx += dy of kRows rows of one column, each times the weights [u][o][run].
template <int kRows, int kVectors>
[[gnu::target("avx512f")]] void AddInputGradient(const float* dy, std::int64_t dy_pitch, std::int64_t out_channels,
                                                 const float* weight, std::int64_t window_rows, float* dx,
                                                 std::int64_t dx_pitch, __mmask16 last) {
  for (std::int64_t u = 0; u < window_rows; ++u) {
    __m512 sums[kRows][kVectors];
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
    }
    for (std::int64_t o = 0; o < out_channels; ++o, weight += kVectors * kLanes) {
      __m512 factors[kVectors];
      for (int v = 0; v < kVectors; ++v) factors[v] = _mm512_loadu_ps(weight + v * kLanes);
      for (int r = 0; r < kRows; ++r) {
        const __m512 cotangent = _mm512_set1_ps(dy[r * dy_pitch + o]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_fmadd_ps(cotangent, factors[v], sums[r][v]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      float* run = dx + (r + u) * dx_pitch;
      for (int v = 0; v < kVectors; ++v, run += kLanes) {
        const __mmask16 lanes = v + 1 == kVectors ? last : __mmask16{0xffff};
        _mm512_mask_storeu_ps(run, lanes, _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, run), sums[r][v]));
      }
    }
  }
}

/// The gradient of one image: dy [rows, columns, out] in f32, dx padded and zero.
template <int kVectors>
void InputGradientOfImage(const NarrowConvolution& c, const PaddedImage& image, const float* dy, const float* weight,
                          float* dx) {
  constexpr int kAtOnce = 4;
  const Window& w = c.window;
  const std::int64_t dy_pitch = w.output[1] * c.out_channels;
  const __mmask16 last = LanesOfLast(w.kernel[1] * c.in_channels);
  for (std::int64_t row = 0; row < w.output[0]; row += kAtOnce) {
    for (std::int64_t column = 0; column < w.output[1]; ++column) {
      const float* from = dy + row * dy_pitch + column * c.out_channels;
      float* to = dx + row * image.pitch() + column * c.in_channels;
      WithConstant<kAtOnce>(static_cast<int>(std::min<std::int64_t>(kAtOnce, w.output[0] - row)), [&](auto rows) {
        AddInputGradient<decltype(rows)::value, kVectors>(from, dy_pitch, c.out_channels, weight, w.kernel[0], to,
                                                          image.pitch(), last);
      });
    }
  }
}

/// One image's share of the weights' gradient, of one channel of x: sums [u][run] += x[h + u][z] * dy[h][z - kw + 1
/// ..], runs of `out_channels` values for each column of the window, the last column first.
template <int kRows, int kVectors>
[[gnu::target("avx512f")]] void AddWeightGradient(const PaddedImage& x_image, const float* x,
                                                  const PaddedImage& dy_image, const float* dy, std::int64_t rows,
                                                  float* sums) {
  __m512 totals[kRows][kVectors];
  for (int u = 0; u < kRows; ++u) {
    for (int v = 0; v < kVectors; ++v) totals[u][v] = _mm512_loadu_ps(sums + (u * kVectors + v) * kLanes);
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* values = x + row * x_image.pitch();
    const float* cotangents = dy + row * dy_image.pitch();
    for (std::int64_t column = 0; column < x_image.columns; ++column) {
      __m512 run[kVectors];
      for (int v = 0; v < kVectors; ++v) run[v] = _mm512_loadu_ps(cotangents + v * kLanes);
      for (int u = 0; u < kRows; ++u) {
        const __m512 value = _mm512_set1_ps(values[u * x_image.pitch()]);
        for (int v = 0; v < kVectors; ++v) totals[u][v] = _mm512_fmadd_ps(value, run[v], totals[u][v]);
      }
      values += x_image.channels;
      cotangents += dy_image.channels;
    }
  }
  for (int u = 0; u < kRows; ++u) {
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(sums + (u * kVectors + v) * kLanes, totals[u][v]);
  }
}

/// dy with kw - 1 columns of zeros on both sides.
PaddedImage CotangentImage(const NarrowConvolution& c) {
  const Window& w = c.window;
  return {w.output[0],    w.output[1] + 2 * (w.kernel[1] - 1), c.out_channels, w.output[0], w.output[1], 0,
          w.kernel[1] - 1};
}

}  // namespace

bool NarrowConvolution::TakesGradInput() const {
  return VectorsOf(window.kernel[1] * in_channels) <= kMaxRun && in_channels < kLanes / 2 &&
         InputImage(*this).size() <= kImageFloats &&
         window.output[0] * window.output[1] * out_channels <= kImageFloats && CoversInput(*this);
}

bool NarrowConvolution::TakesGradWeight() const {
  return VectorsOf(window.kernel[1] * out_channels) <= kMaxRun && out_channels < kLanes / 2 &&
         window.kernel[0] <= kMaxRows && in_channels <= 4 && InputImage(*this).size() <= kImageFloats &&
         CotangentImage(*this).size() <= kImageFloats && CoversInput(*this);
}

std::unique_ptr<Kernel> MakeNarrowConv2dGradInput(const KernelSpec& spec, const NarrowConvolution& c) {
  const PaddedImage image = InputImage(c);
  const std::int64_t run = c.window.kernel[1] * c.in_channels;
  const std::int64_t packed_run = VectorsOf(run) * kLanes;
  const std::size_t scratch =
      static_cast<std::size_t>(c.window.kernel[0] * c.out_channels * packed_run) * sizeof(float);
  return *MakeKernel(
      [c, image, run, packed_run, dy = spec.inputs[0].dtype, weight = spec.inputs[1].dtype,
       dx = spec.outputs[0].dtype](const KernelOperands& operands) {
        const Window& w = c.window;
        const std::int64_t taps = w.kernel[0] * w.kernel[1];
        const Source weights{weight, operands.inputs[1]};
        float* packed = static_cast<float*>(operands.workspace);
        std::fill_n(packed, w.kernel[0] * c.out_channels * packed_run, 0.0f);
        for (std::int64_t i = 0; i < c.out_channels * c.in_channels * taps; ++i) {
          const std::int64_t o = i / (c.in_channels * taps), channel = i / taps % c.in_channels;
          const std::int64_t u = i % taps / w.kernel[1], v = i % w.kernel[1];
          packed[(u * c.out_channels + o) * packed_run + v * c.in_channels + channel] = weights.At(i);
        }
        const Sink result{dx, operands.outputs[0]};
        const std::int64_t cotangents = w.output[0] * w.output[1] * c.out_channels;
        ParallelFor(c.batch, c.batch * cotangents * taps, [&](std::int64_t index) {
          alignas(64) float buffer[kImageFloats], sums[kImageFloats];
          const float* from = Source{dy, operands.inputs[0]}.Load(index * cotangents, cotangents, buffer);
          std::fill_n(sums, image.size(), 0.0f);
          WithConstant<kMaxRun>(VectorsOf(run), [&](auto vectors) {
            InputGradientOfImage<decltype(vectors)::value>(c, image, from, packed, sums);
          });
          const std::int64_t row_run = image.image_columns * image.channels;
          for (std::int64_t row = 0; row < image.image_rows; ++row) {
            StoreFloats(dx, sums + image.OffsetOf(row), result.data, (index * image.image_rows + row) * row_run,
                        row_run);
          }
        });
      },
      scratch);
}

std::unique_ptr<Kernel> MakeNarrowConv2dGradWeight(const KernelSpec& spec, const NarrowConvolution& c) {
  const Window& w = c.window;
  const PaddedImage x_image = InputImage(c);
  const PaddedImage dy_image = CotangentImage(c);
  const int vectors = VectorsOf(w.kernel[1] * c.out_channels);
  const std::int64_t channel_sums = w.kernel[0] * vectors * kLanes;
  const std::int64_t group_sums = c.in_channels * channel_sums;
  const std::int64_t weights = c.out_channels * c.in_channels * w.kernel[0] * w.kernel[1];
  const std::int64_t groups = std::min(kGroups, c.batch);
  const std::size_t scratch = static_cast<std::size_t>(groups * group_sums + weights) * sizeof(float);
  return *MakeKernel(
      [c, x_image, dy_image, vectors, channel_sums, group_sums, weights, groups, x = spec.inputs[0].dtype,
       dy = spec.inputs[1].dtype, dweight = spec.outputs[0].dtype](const KernelOperands& operands) {
        const Window& w = c.window;
        float* partial = static_cast<float*>(operands.workspace);
        const std::int64_t work = c.batch * w.output[0] * w.output[1] * weights;
        ParallelFor(groups, work, [&](std::int64_t group) {
          alignas(64) float values[kImageFloats], cotangents[kImageFloats];
          float* sums = partial + group * group_sums;
          std::fill_n(sums, group_sums, 0.0f);
          for (std::int64_t image = group; image < c.batch; image += groups) {
            x_image.Fill({x, operands.inputs[0]}, image, values);
            dy_image.Fill({dy, operands.inputs[1]}, image, cotangents);
            for (std::int64_t channel = 0; channel < c.in_channels; ++channel) {
              WithConstant<kMaxRows>(static_cast<int>(w.kernel[0]), [&](auto rows) {
                WithConstant<kMaxRun>(vectors, [&](auto run) {
                  AddWeightGradient<decltype(rows)::value, decltype(run)::value>(
                      x_image, values + channel, dy_image, cotangents, w.output[0], sums + channel * channel_sums);
                });
              });
            }
          }
        });
        float* totals = partial + groups * group_sums;
        const std::int64_t taps = w.kernel[0] * w.kernel[1];
        for (std::int64_t i = 0; i < weights; ++i) {
          const std::int64_t o = i / (c.in_channels * taps), channel = i / taps % c.in_channels;
          const std::int64_t u = i % taps / w.kernel[1], v = i % w.kernel[1];
          const std::int64_t place =
              channel * channel_sums + u * vectors * kLanes + (w.kernel[1] - 1 - v) * c.out_channels + o;
          float total = 0;
          for (std::int64_t group = 0; group < groups; ++group) total += partial[group * group_sums + place];
          totals[i] = total;
        }
        StoreFloats(dweight, totals, operands.outputs[0], 0, weights);
      },
      scratch);
}

}  // namespace mpc::cpu
