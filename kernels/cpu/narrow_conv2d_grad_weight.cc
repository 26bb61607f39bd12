// The gradient of narrow weights. Elements of dy fill vectors as the results do in the forward product. Lane by lane
// they are multiplied by the pixels of x that they met there. The lanes of a channel are added up at the end.
#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/lane_vectors.h"
#include "kernels/cpu/narrow_conv2d.h"
#include "kernels/cpu/padded_image.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/repeated_pixels.h"

namespace mpc::cpu {
namespace {

/// Groups of images whose gradients are summed apart.
constexpr std::int64_t kGroups = 16;

/// One vector of every row of dy, and x at the place where the first of these rows meets the window's first row.
struct Column {
  const float* x;
  std::int64_t x_pitch, pixel_step;
  const std::int32_t* place;  ///< permutation of RepeatedPixels
  const float* dy;
  std::int64_t dy_pitch, rows;
  std::int64_t lanes;  ///< elements of dy in a vector
};

using AddColumnFunction = void (*)(const Column&, float*);
/// Functions for some columns of the window.
struct ByColumns {
  std::array<AddColumnFunction, 3> add;  ///< indexed by columns - 1
  std::int64_t most;                     ///< columns

  /// How many of `rest` columns to take next.
  std::int64_t CountOf(std::int64_t rest) const { return rest == most + 1 ? (rest + 1) / 2 : std::min(most, rest); }
};

#define MPC_LOOPS "kernels/cpu/narrow_conv2d_grad_weight_loops.inc"
#include "kernels/cpu/loops_by_level.inc"

/// The gradient's sums, resolved, by the loops of a level.
template <typename Loops>
class WeightGradient {
 public:
  explicit WeightGradient(const NarrowConvolution& c)
      : convolution_(c), image_(ImageOfPixels<kLanes>(c)), pixels_(c.out_channels, image_.pixel_step()) {
    for (std::int64_t i = 0; i < group_size(); ++i) {
      const std::int64_t u = i / kLanes % rows(), v = i / kLanes / rows() % columns();
      const std::int64_t channel = i / channel_size() % c.in_channels, pattern = i / channel_size() / c.in_channels;
      const std::int64_t out = (pattern * kLanes + i % kLanes) % c.out_channels;
      weight_.push_back(static_cast<std::int32_t>(((out * c.in_channels + channel) * rows() + u) * columns() + v));
    }
  }

  bool fits() const { return image_.fits() && image_.size() <= kImageFloats && cotangents() <= kImageFloats; }

  std::int64_t cotangents() const {
    return convolution_.window.output[0] * convolution_.window.output[1] * convolution_.out_channels;
  }
  std::int64_t weights() const { return rows() * columns() * convolution_.in_channels * convolution_.out_channels; }
  /// Floats of one group's sums: [pattern][channel][column of the window][row of the window][lane].
  std::int64_t group_size() const { return pixels_.patterns() * convolution_.in_channels * channel_size(); }

  /// Adds image `image` to the sums of a group.
  void Add(Source x, Source dy, std::int64_t image, float* sums) const {
    const NarrowConvolution& c = convolution_;
    alignas(64) float pixels[kImageFloats], buffer[kImageFloats];
    image_.Fill(x, image, pixels);
    const float* values = dy.Load(image * cotangents(), cotangents(), buffer);
    // Columns of many rows are read, one line of memory a row: those of the group's next image are fetched meanwhile.
    const float* next = values == buffer ? values : values + kGroups * cotangents();
    const std::int64_t row_length = c.window.output[1] * c.out_channels;
    const ByColumns& by_columns = Loops::AddColumnFor(rows());
    for (std::int64_t at = 0, vector = 0; at < row_length; at += kLanes, ++vector) {
      const std::int64_t left = std::min(row_length - at, kLanes);
      Column column{pixels + pixels_.BeginOf(vector),
                    image_.pitch(),
                    image_.pixel_step(),
                    pixels_.PlaceOf(vector),
                    values + at,
                    row_length,
                    c.window.output[0],
                    left};
      for (std::int64_t row = 0; row < c.window.output[0]; ++row) {
        __builtin_prefetch(next + at * c.window.output[0] + row * kLanes);
      }
      float* to = sums + vector % pixels_.patterns() * c.in_channels * channel_size();
      for (std::int64_t channel = 0; channel < c.in_channels; ++channel) {
        const float* first = column.x;
        for (std::int64_t rest = columns(); rest > 0;) {
          const std::int64_t count = by_columns.CountOf(rest);
          by_columns.add[static_cast<std::size_t>(count - 1)](column, to);
          column.x += count * image_.pixel_step();
          to += count * rows() * kLanes;
          rest -= count;
        }
        column.x = first + image_.channel_step();
      }
    }
  }

  /// Adds the groups' sums into those of the first one, and its lanes into `dweight` [O, C, kh, kw].
  void Finish(float* sums, std::int64_t groups, float* dweight) const {
    for (std::int64_t group = 1; group < groups; ++group) {
      for (std::int64_t i = 0; i < group_size(); ++i) sums[i] += sums[group * group_size() + i];
    }
    std::fill_n(dweight, weights(), 0.0f);
    for (const std::int32_t weight : weight_) dweight[weight] += *sums++;
  }

 private:
  static constexpr std::int64_t kLanes = Loops::kLanes;

  std::int64_t rows() const { return convolution_.window.kernel[0]; }
  std::int64_t columns() const { return convolution_.window.kernel[1]; }
  std::int64_t channel_size() const { return rows() * columns() * kLanes; }

  NarrowConvolution convolution_;
  PaddedImage image_;
  RepeatedPixels<kLanes> pixels_;
  std::vector<std::int32_t> weight_;  ///< the weight that each sum of a group belongs to
};

template <typename Loops>
std::unique_ptr<Kernel> MakeWith(const KernelSpec& spec, const NarrowConvolution& c) {
  const WeightGradient<Loops> gradient(c);
  const std::int64_t groups = std::min(kGroups, c.batch);
  const std::size_t scratch =
      static_cast<std::size_t>(groups * gradient.group_size() + gradient.weights()) * sizeof(float);
  return *MakeKernel(
      [c, gradient, groups, x = spec.inputs[0].dtype, dy = spec.inputs[1].dtype,
       dweight = spec.outputs[0].dtype](const KernelOperands& operands) {
        float* sums = static_cast<float*>(operands.workspace);
        ParallelFor(groups, c.batch * gradient.cotangents() * gradient.weights(), [&](std::int64_t group) {
          float* own = sums + group * gradient.group_size();
          std::fill_n(own, gradient.group_size(), 0.0f);
          for (std::int64_t image = group; image < c.batch; image += groups) {
            gradient.Add({x, operands.inputs[0]}, {dy, operands.inputs[1]}, image, own);
          }
        });
        float* totals = sums + groups * gradient.group_size();
        gradient.Finish(sums, groups, totals);
        StoreFloats(dweight, totals, operands.outputs[0], 0, gradient.weights());
      },
      scratch);
}

}  // namespace

bool NarrowConvolution::TakesGradWeight(bool bf16_products) const {
  bool narrow;
  if (HasAvx512()) {
    // Cotangents of 16 channels fill a vector anyway. The library was a tenth faster then, but waited for threads of
    // its own on a busy machine. Its primitives run on our threads since, and the choice was not measured anew. The
    // library is faster still with one channel of x, and in bf16.
    const bool one_vector = out_channels == kMaxRepeated && in_channels > 1 && in_channels <= kMaxNarrow;
    narrow = (out_channels <= kMaxNarrow && in_channels <= kMaxRepeated) || (one_vector && !bf16_products);
  } else {
    // A vector of the library has 8 lanes, which 6 channels leave less empty. So it is faster with more work.
    narrow = out_channels < kMaxNarrow && in_channels < kMaxNarrow / 2;
  }
  return narrow && window.kernel[0] <= kMaxWindowRows && OnLevel<avx512::Loops, avx2::Loops>([this](auto loops) {
           return WeightGradient<decltype(loops)>(*this).fits();
         });
}

std::unique_ptr<Kernel> MakeNarrowConv2dGradWeight(const KernelSpec& spec, const NarrowConvolution& c) {
  return OnLevel<avx512::Loops, avx2::Loops>([&](auto loops) { return MakeWith<decltype(loops)>(spec, c); });
}

}  // namespace mpc::cpu
