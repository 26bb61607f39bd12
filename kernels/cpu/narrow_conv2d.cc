#include "kernels/cpu/narrow_conv2d.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/lane_vectors.h"
#include "kernels/cpu/padded_image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/repeated_pixels.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/fused_activation.h"

namespace mpc::cpu {
namespace {

/// The numbers of result rows that a block may have, by preference. Each row has an accumulator of its own.
constexpr std::array<int, 5> kRowBlocks{14, 10, 8, 4, 1};

/// The operands of a block, from its first results on. Row i of the results takes the window from row i of x.
struct Operands {
  const float* x;
  std::int64_t x_pitch, pixel_step, channels, channel_step;
  const std::int32_t* place;  ///< permutation of RepeatedPixels
  const float* weights;       ///< [channel of x][column of the window][row of the window][lane]
  std::int64_t columns;       ///< columns of the window
  const float* bias;          ///< a vector
  float* y;
  std::int64_t y_pitch;
  std::int64_t lanes;  ///< results, at most those of a vector
};

using SlideWindowFunction = void (*)(const Operands&);
/// Functions in the order of kRowBlocks.
using ByBlock = std::array<SlideWindowFunction, kRowBlocks.size()>;

#define MPC_LOOPS "kernels/cpu/narrow_conv2d_loops.inc"
#include "kernels/cpu/loops_by_level.inc"

/// The index in kRowBlocks of the block that computes `rows` rows with the least work. Blocks overlap where they do not
/// divide the rows.
std::size_t RowBlockFor(std::int64_t rows) {
  const auto cost = [rows](std::size_t block) {
    const std::int64_t size = kRowBlocks[block];
    return size > rows ? rows * kImageFloats : (rows + size - 1) / size * (size + 1);
  };
  std::size_t best = 0;
  for (std::size_t block = 1; block < kRowBlocks.size(); ++block) {
    if (cost(block) < cost(best)) best = block;
  }
  return best;
}

/// The convolution of images, resolved, by the loops of a level.
template <typename Loops>
class SlidingProduct {
 public:
  explicit SlidingProduct(const NarrowConvolution& c)
      : convolution_(c),
        image_(ImageOfPixels<kLanes>(c)),
        pixels_(c.out_channels, image_.pixel_step()),
        block_(RowBlockFor(c.window.output[0])),
        row_length_(c.window.output[1] * c.out_channels) {
    const std::int64_t rows = c.window.kernel[0], columns = c.window.kernel[1], lanes = pixels_.patterns() * kLanes;
    for (std::int64_t first = 0; first < lanes; first += kLanes) {
      for (std::int64_t tap = 0; tap < taps(); ++tap) {
        const std::int64_t u = tap % rows, v = tap / rows % columns, channel = tap / rows / columns;
        for (std::int64_t i = first; i < first + kLanes; ++i) {
          const std::int64_t weight = ((i % c.out_channels * c.in_channels + channel) * rows + u) * columns + v;
          packed_weights_.push_back(static_cast<std::int32_t>(weight));
        }
      }
    }
  }

  bool fits() const {
    return image_.fits() && image_.size() <= kImageFloats && block_rows() * row_length_ <= kImageFloats;
  }

  /// The number of floats of the packed biases and weights, and of the unpacked weights.
  std::int64_t packed_size() const { return pixels_.patterns() * kLanes * (1 + taps()) + weights(); }

  /// Biases and weights in the order in which the lanes of results meet them, for each pattern.
  void Pack(Source weight, std::optional<Source> bias, float* packed) const {
    const float* values = weight.Load(0, weights(), packed + packed_size() - weights());
    for (std::int64_t i = 0; i < pixels_.patterns() * kLanes; ++i) {
      *packed++ = bias ? bias->ElementAt(i % convolution_.out_channels) : 0.0f;
    }
    for (const std::int32_t place : packed_weights_) *packed++ = values[place];
  }

  void Run(Source x, const float* packed, Activation activation, std::int64_t image, Sink y) const {
    const std::int64_t rows = convolution_.window.output[0], count = block_rows() * row_length_;
    alignas(64) float pixels[kImageFloats], buffer[kImageFloats];
    image_.Fill(x, image, pixels);
    for (std::int64_t first = 0; first < rows; first += block_rows()) {
      const std::int64_t row = std::min(first, rows - block_rows());
      const std::int64_t offset = (image * rows + row) * row_length_;
      float* results = y.Target(offset, buffer);
      Block(pixels + row * image_.pitch(), packed, results);
      if (activation != Activation::kNone) {
        for (std::int64_t i = 0; i < count; ++i) results[i] = scalar::Activate(activation, results[i]);
      }
      y.Commit(offset, count, results);
    }
  }

 private:
  static constexpr std::int64_t kLanes = Loops::kLanes;

  std::int64_t block_rows() const { return kRowBlocks[block_]; }
  std::int64_t taps() const {
    return convolution_.window.kernel[0] * convolution_.window.kernel[1] * convolution_.in_channels;
  }

  std::int64_t weights() const { return taps() * convolution_.out_channels; }

  void Block(const float* x, const float* packed, float* y) const {
    const Window& w = convolution_.window;
    const SlideWindowFunction slide = Loops::SlideWindowFor(pixels_.source(), w.kernel[0], block_);
    const float* weights = packed + pixels_.patterns() * kLanes;
    for (std::int64_t at = 0, vector = 0; at < row_length_; at += kLanes, ++vector) {
      const std::int64_t pattern = vector % pixels_.patterns();
      const std::int64_t left = std::min(row_length_ - at, kLanes);
      // Columns of many rows are written, one line of memory a row: those of the next block are fetched meanwhile.
      for (std::int64_t row = 0; row < block_rows(); ++row) {
        __builtin_prefetch(y + row_length_ * block_rows() + at * block_rows() + row * kLanes, 1);
      }
      slide({x + pixels_.BeginOf(vector), image_.pitch(), image_.pixel_step(), image_.channels, image_.channel_step(),
             pixels_.PlaceOf(vector), weights + pattern * taps() * kLanes, w.kernel[1], packed + pattern * kLanes,
             y + at, row_length_, left});
    }
  }

  NarrowConvolution convolution_;
  PaddedImage image_;
  RepeatedPixels<kLanes> pixels_;
  std::size_t block_;  ///< index in kRowBlocks
  std::int64_t row_length_;
  std::vector<std::int32_t> packed_weights_;  ///< for each packed weight, its index among the weights
};

}  // namespace

std::optional<NarrowConvolution> NarrowConvolution::Create(const Attributes& attributes, const Shape& x,
                                                           const Shape& weight) {
  if (!HasLanes() || attributes.Get(attribute::kDataFormat) != DataFormat::kNHWC ||
      attributes.Get(attribute::kGroups) != 1) {
    return std::nullopt;
  }
  absl::StatusOr<Window> window = ResolveWindow(attributes, {x[1], x[2]}, {weight[2], weight[3]});
  if (!window.ok() || window->stride != std::array<std::int64_t, 2>{1, 1} ||
      window->dilation != std::array<std::int64_t, 2>{1, 1}) {
    return std::nullopt;
  }
  return NarrowConvolution{x[0], x[3], weight[0], *window};
}

bool NarrowConvolution::TakesForward(bool bf16_products) const {
  // Results of 16 channels fill a vector anyway. The library is slow then only with few channels of x, and not in bf16.
  const bool one_vector = out_channels == kMaxRepeated && in_channels < kMaxRepeated &&
                          window.kernel[0] * window.kernel[1] > 1 && !bf16_products;
  const bool narrow = out_channels <= kMaxNarrow || one_vector;
  return narrow && in_channels <= kMaxRepeated && window.kernel[0] <= kMaxWindowRows &&
         OnLevel<avx512::Loops, avx2::Loops>(
             [this](auto loops) { return SlidingProduct<decltype(loops)>(*this).fits(); });
}

namespace {

template <typename Loops>
std::unique_ptr<Kernel> MakeWith(const KernelSpec& spec, const NarrowConvolution& c) {
  SlidingProduct<Loops> product(c);
  const std::size_t scratch = static_cast<std::size_t>(product.packed_size()) * sizeof(float);
  return *MakeKernel(
      [c, product = std::move(product), activation = spec.attributes.Get(attribute::kActivation),
       x = spec.inputs[0].dtype, weight = spec.inputs[1].dtype, y = spec.outputs[0].dtype,
       bias = spec.inputs.size() > 2 ? std::optional<DType>(spec.inputs[2].dtype)
                                     : std::nullopt](const KernelOperands& operands) {
        float* packed = static_cast<float*>(operands.workspace);
        product.Pack({weight, operands.inputs[1]},
                     bias ? std::optional<Source>({*bias, operands.inputs[2]}) : std::nullopt, packed);
        const std::int64_t work = c.batch * c.window.output[0] * c.window.output[1] * c.window.kernel[0] *
                                  c.window.kernel[1] * c.in_channels * c.out_channels / kMaxRepeated;
        ParallelFor(c.batch, work, [&](std::int64_t image) {
          product.Run({x, operands.inputs[0]}, packed, activation, image, {y, operands.outputs[0]});
        });
      },
      scratch);
}

}  // namespace

std::unique_ptr<Kernel> MakeNarrowConv2d(const KernelSpec& spec, const NarrowConvolution& c) {
  return OnLevel<avx512::Loops, avx2::Loops>([&](auto loops) { return MakeWith<decltype(loops)>(spec, c); });
}

}  // namespace mpc::cpu
