// The gradient of narrow images. In channels-last storage a row of a window is one run: `kw` pixels of few channels. A
// run fills one to three vectors. A column of dy adds such runs to all rows of dx that the windows of its rows reach.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/narrow_conv2d.h"
#include "kernels/cpu/padded_image.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {
namespace {

/// The most vectors of a run.
constexpr int kMaxRun = 3;

std::int64_t VectorsOf(std::int64_t run) { return (run + kLanes - 1) / kLanes; }

/// Some rows of one column of dy, and the run of dx that the first of them reaches first.
struct Column {
  const float* dy;
  std::int64_t dy_pitch, out_channels;
  const float* weights;  ///< [row of the window][result channel][value of the run]
  float* dx;
  std::int64_t dx_pitch;
  __mmask16 last;  ///< lanes of a run's last vector
};

/// Adds to dx the products of kRows rows of dy. The sums of all rows of dx that they reach are kept in registers.
template <int kWindowRows, int kVectors, int kRows>
[[gnu::target("avx512f")]] void AddColumn(const Column& column) {
  constexpr int kReached = kRows + kWindowRows - 1;
  __m512 sums[kReached][kVectors];
#pragma GCC unroll 24
  for (int row = 0; row < kReached; ++row) {
    const float* run = column.dx + row * column.dx_pitch;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __mmask16 lanes = v + 1 == kVectors ? column.last : __mmask16{0xffff};
      sums[row][v] = _mm512_maskz_loadu_ps(lanes, run + v * kLanes);
    }
  }
  const float* weights = column.weights;
#pragma GCC unroll 8
  for (int u = 0; u < kWindowRows; ++u) {
    for (std::int64_t o = 0; o < column.out_channels; ++o, weights += kVectors * kLanes) {
      __m512 run[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) run[v] = _mm512_loadu_ps(weights + v * kLanes);
      const float* dy = column.dy + o;
#pragma GCC unroll 16
      for (int row = 0; row < kRows; ++row, dy += column.dy_pitch) {
        const __m512 cotangent = _mm512_set1_ps(*dy);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[row + u][v] = _mm512_fmadd_ps(cotangent, run[v], sums[row + u][v]);
      }
    }
  }
#pragma GCC unroll 24
  for (int row = 0; row < kReached; ++row) {
    float* run = column.dx + row * column.dx_pitch;
#pragma GCC unroll 4
    for (int v = 0; v + 1 < kVectors; ++v) _mm512_storeu_ps(run + v * kLanes, sums[row][v]);
    _mm512_mask_storeu_ps(run + (kVectors - 1) * kLanes, column.last, sums[row][kVectors - 1]);
  }
}

using AddColumnFunction = void (*)(const Column&);

/// The functions for some numbers of rows, the largest first. The last one takes a single row.
struct ByRows {
  std::array<std::int64_t, 3> rows;
  std::array<AddColumnFunction, 3> add;
};

template <int kWindowRows, int kVectors>
constexpr ByRows MakeByRows() {
  // Sums, a run and a cotangent have to fit 32 registers.
  constexpr int kMost = std::min(14, 28 / kVectors - kWindowRows + 1);
  constexpr int kSome = std::min(4, kMost);
  return {{kMost, kSome, 1},
          {AddColumn<kWindowRows, kVectors, kMost>, AddColumn<kWindowRows, kVectors, kSome>,
           AddColumn<kWindowRows, kVectors, 1>}};
}

/// Functions, indexed by the run's vectors - 1.
template <int kWindowRows>
constexpr std::array<ByRows, kMaxRun> kByVectors{MakeByRows<kWindowRows, 1>(), MakeByRows<kWindowRows, 2>(),
                                                 MakeByRows<kWindowRows, 3>()};

/// Functions, indexed by the window's rows - 1.
constexpr std::array<std::array<ByRows, kMaxRun>, kMaxWindowRows> kByWindowRows{
    kByVectors<1>, kByVectors<2>, kByVectors<3>, kByVectors<4>, kByVectors<5>};

/// The gradient of images, resolved.
class InputGradient {
 public:
  explicit InputGradient(const NarrowConvolution& c) : convolution_(c), image_(PaddedImage::InputOf(c)) {
    const std::int64_t rows = c.window.kernel[0], columns = c.window.kernel[1];
    for (std::int64_t i = 0; i < c.out_channels * c.in_channels * rows * columns; ++i) {
      const std::int64_t v = i % columns, u = i / columns % rows;
      const std::int64_t channel = i / columns / rows % c.in_channels, o = i / columns / rows / c.in_channels;
      const std::int64_t place = (u * c.out_channels + o) * packed_run() + v * c.in_channels + channel;
      place_.push_back(static_cast<std::int32_t>(place));
    }
  }

  /// The padded image has to cover the input, so that all of it is written: a window may leave its end unread.
  bool fits() const {
    return VectorsOf(run()) <= kMaxRun && convolution_.window.kernel[0] <= kMaxWindowRows &&
           image_.size() <= kImageFloats && cotangents() <= kImageFloats &&
           image_.rows >= image_.top + image_.image_rows && image_.columns >= image_.left + image_.image_columns;
  }

  std::int64_t cotangents() const {
    return convolution_.window.output[0] * convolution_.window.output[1] * convolution_.out_channels;
  }
  /// The number of floats of the packed weights, and of the unpacked weights.
  std::int64_t packed_size() const { return packed_weights() + static_cast<std::int64_t>(place_.size()); }

  /// Packs weights as [row of the window][result channel][run]. Runs are filled up with zeros.
  void Pack(Source weight, float* packed) const {
    const auto count = static_cast<std::int64_t>(place_.size());
    const float* values = weight.Load(0, count, packed + packed_weights());
    std::fill_n(packed, packed_weights(), 0.0f);
    for (const std::int32_t place : place_) packed[place] = *values++;
  }

  void Run(Source dy, const float* packed, std::int64_t image, Sink dx) const {
    alignas(64) float buffer[kImageFloats], sums[kImageFloats];
    const float* values = dy.Load(image * cotangents(), cotangents(), buffer);
    std::fill_n(sums, image_.size(), 0.0f);
    AddImage(values, packed, sums);
    const std::int64_t row_run = image_.image_columns * image_.channels;
    for (std::int64_t row = 0; row < image_.image_rows; ++row) {
      StoreFloats(dx.dtype, sums + image_.OffsetOf(row), dx.data, (image * image_.image_rows + row) * row_run, row_run);
    }
  }

 private:
  std::int64_t run() const { return convolution_.window.kernel[1] * convolution_.in_channels; }
  std::int64_t packed_run() const { return VectorsOf(run()) * kLanes; }
  std::int64_t packed_weights() const {
    return convolution_.window.kernel[0] * convolution_.out_channels * packed_run();
  }

  /// Adds dy [rows, columns, out], in f32, into the padded dx.
  void AddImage(const float* dy, const float* packed, float* dx) const {
    const NarrowConvolution& c = convolution_;
    const std::int64_t rows = c.window.output[0], columns = c.window.output[1];
    const ByRows& by_rows =
        kByWindowRows[static_cast<std::size_t>(c.window.kernel[0] - 1)][static_cast<std::size_t>(VectorsOf(run()) - 1)];
    const auto last = static_cast<__mmask16>((1u << (run() - packed_run() + kLanes)) - 1u);
    std::size_t size = 0;
    for (std::int64_t row = 0; row < rows; row += by_rows.rows[size]) {
      while (by_rows.rows[size] > rows - row) ++size;
      for (std::int64_t column = 0; column < columns; ++column) {
        // Columns of many rows are read, one line of memory a row: those of the next image are fetched meanwhile.
        const float* next = dy + (rows * columns + column * rows) * c.out_channels;
        for (std::int64_t i = 0; row == 0 && i < rows * c.out_channels; i += kLanes) __builtin_prefetch(next + i);
        by_rows.add[size]({dy + (row * columns + column) * c.out_channels, columns * c.out_channels, c.out_channels,
                           packed, dx + row * image_.pitch() + column * c.in_channels, image_.pitch(), last});
      }
    }
  }

  NarrowConvolution convolution_;
  PaddedImage image_;
  std::vector<std::int32_t> place_;  ///< index of each weight among the packed ones
};

}  // namespace

bool NarrowConvolution::TakesGradInput(bool /*bf16_products*/) const {
  return in_channels < kLanes / 2 && InputGradient(*this).fits();
}

std::unique_ptr<Kernel> MakeNarrowConv2dGradInput(const KernelSpec& spec, const NarrowConvolution& c) {
  const InputGradient gradient(c);
  const std::size_t scratch = static_cast<std::size_t>(gradient.packed_size()) * sizeof(float);
  return *MakeKernel(
      [c, gradient, dy = spec.inputs[0].dtype, weight = spec.inputs[1].dtype,
       dx = spec.outputs[0].dtype](const KernelOperands& operands) {
        float* packed = static_cast<float*>(operands.workspace);
        gradient.Pack({weight, operands.inputs[1]}, packed);
        const std::int64_t work = c.batch * gradient.cotangents() * c.window.kernel[0] * c.window.kernel[1];
        ParallelFor(c.batch, work, [&](std::int64_t image) {
          gradient.Run({dy, operands.inputs[0]}, packed, image, {dx, operands.outputs[0]});
        });
      },
      scratch);
}

}  // namespace mpc::cpu
