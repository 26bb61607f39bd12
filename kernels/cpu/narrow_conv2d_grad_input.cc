// The gradient of narrow images. In channels-last storage a row of a window is one run: `kw` pixels of few channels. A
// run fills one to three vectors. A column of dy adds such runs to all rows of dx that the windows of its rows reach.
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/lane_vectors.h"
#include "kernels/cpu/narrow_conv2d.h"
#include "kernels/cpu/padded_image.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {
namespace {

/// The most floats of a run.
constexpr std::int64_t kMaxRun = 48;

/// Some rows of one column of dy, and the run of dx that the first of them reaches first.
struct Column {
  const float* dy;
  std::int64_t dy_pitch, out_channels;
  const float* weights;  ///< [row of the window][result channel][value of the run]
  std::int64_t weights_pitch;
  float* dx;
  std::int64_t dx_pitch;
  std::int64_t last;  ///< values in the last one of the vectors
};

using AddColumnFunction = void (*)(const Column&);

/// The functions for some numbers of rows, the largest first. The last one takes a single row.
struct ByRows {
  std::array<std::int64_t, 3> rows;
  std::array<AddColumnFunction, 3> add;
};

#define MPC_LOOPS "kernels/cpu/narrow_conv2d_grad_input_loops.inc"
#include "kernels/cpu/loops_by_level.inc"

/// The gradient of images, resolved, by the loops of a level.
template <typename Loops>
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
    return run() <= kMaxRun && convolution_.window.kernel[0] <= kMaxWindowRows && image_.size() <= kImageFloats &&
           cotangents() <= kImageFloats && image_.rows >= image_.top + image_.image_rows &&
           image_.columns >= image_.left + image_.image_columns;
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
  static constexpr std::int64_t kLanes = Loops::kLanes;

  std::int64_t run() const { return convolution_.window.kernel[1] * convolution_.in_channels; }
  std::int64_t packed_run() const { return (run() + kLanes - 1) / kLanes * kLanes; }
  std::int64_t packed_weights() const {
    return convolution_.window.kernel[0] * convolution_.out_channels * packed_run();
  }

  /// Adds dy [rows, columns, out], in f32, into the padded dx.
  void AddImage(const float* dy, const float* packed, float* dx) const {
    constexpr std::int64_t kAtOnce = Loops::kMostVectors * kLanes;
    for (std::int64_t at = 0; at < run(); at += kAtOnce) {
      AddVectors(dy, packed + at, std::min(kAtOnce, run() - at), dx + at);
    }
  }

  /// The same for the first `values` values of each run.
  void AddVectors(const float* dy, const float* packed, std::int64_t values, float* dx) const {
    const NarrowConvolution& c = convolution_;
    const std::int64_t rows = c.window.output[0], columns = c.window.output[1];
    const std::int64_t vectors = (values + kLanes - 1) / kLanes;
    const ByRows& by_rows = Loops::AddColumnFor(c.window.kernel[0], vectors);
    std::size_t size = 0;
    for (std::int64_t row = 0; row < rows; row += by_rows.rows[size]) {
      while (by_rows.rows[size] > rows - row) ++size;
      for (std::int64_t column = 0; column < columns; ++column) {
        // Columns of many rows are read, one line of memory a row: those of the next image are fetched meanwhile.
        const float* next = dy + (rows * columns + column * rows) * c.out_channels;
        for (std::int64_t i = 0; row == 0 && i < rows * c.out_channels; i += kLanes) __builtin_prefetch(next + i);
        by_rows.add[size]({dy + (row * columns + column) * c.out_channels, columns * c.out_channels, c.out_channels,
                           packed, packed_run(), dx + row * image_.pitch() + column * c.in_channels, image_.pitch(),
                           values - (vectors - 1) * kLanes});
      }
    }
  }

  NarrowConvolution convolution_;
  PaddedImage image_;
  std::vector<std::int32_t> place_;  ///< index of each weight among the packed ones
};

template <typename Loops>
std::unique_ptr<Kernel> MakeWith(const KernelSpec& spec, const NarrowConvolution& c) {
  const InputGradient<Loops> gradient(c);
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

}  // namespace

bool NarrowConvolution::TakesGradInput(bool /*bf16_products*/) const {
  return in_channels < kMaxNarrow && OnLevel<avx512::Loops, avx2::Loops>(
                                         [this](auto loops) { return InputGradient<decltype(loops)>(*this).fits(); });
}

std::unique_ptr<Kernel> MakeNarrowConv2dGradInput(const KernelSpec& spec, const NarrowConvolution& c) {
  return OnLevel<avx512::Loops, avx2::Loops>([&](auto loops) { return MakeWith<decltype(loops)>(spec, c); });
}

}  // namespace mpc::cpu
