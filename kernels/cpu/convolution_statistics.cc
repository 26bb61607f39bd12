// conv2d_statistics: conv2d, then one pass over what it has stored. Sums are f64, each channel's in an order that the
// shape alone gives.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "kernels/convolution_part.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/moments.h"
#include "kernels/window.h"

namespace mpc::cpu {
namespace {

/// Sums of stored elements and of their squares, lane by lane.
class LaneSums {
 public:
  static constexpr std::int64_t kLanes = 64;

  /// Adds at most kLanes elements from `offset` on.
  void Add(DType dtype, const void* data, std::int64_t offset, std::int64_t size) {
    float values[kLanes];
    LoadFloats(dtype, data, offset, size, values);
    for (std::int64_t lane = 0; lane < size; ++lane) {
      const double value = values[lane];
      sum_[lane] += value;
      squares_[lane] += value * value;
    }
  }

  scalar::Moments<float> MomentsOfLane(std::int64_t lane, double count) const {
    return scalar::Moments<float>::FromSums(sum_[lane], squares_[lane], count);
  }
  scalar::Moments<float> MomentsOfAll(double count) const {
    double sum = 0, squares = 0;
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      sum += sum_[lane];
      squares += squares_[lane];
    }
    return scalar::Moments<float>::FromSums(sum, squares, count);
  }

 private:
  double sum_[kLanes] = {};
  double squares_[kLanes] = {};
};

/// The addresses that the statistics of a channel go to. Null where they are not wanted.
struct Results {
  float *mean, *variance, *inv_std;
  float epsilon;

  void Store(std::int64_t channel, const scalar::Moments<float>& moments) const {
    if (mean != nullptr) mean[channel] = moments.mean;
    if (variance != nullptr) variance[channel] = moments.variance;
    if (inv_std != nullptr) inv_std[channel] = 1.0f / std::sqrt(moments.variance + epsilon);
  }
};

/// An image batch as the statistics see it.
struct ChannelImage {
  DType dtype;
  bool channels_last;
  std::int64_t batch, channels, plane;

  explicit ChannelImage(const KernelSpec& convolution) {
    const TensorSpec& y = convolution.outputs[0];
    const DataFormat format = convolution.attributes.Get(attribute::kDataFormat);
    const ImageAxes axes = AxesOf(format);
    const auto extent = [&](int axis) { return y.shape[static_cast<std::size_t>(axis)]; };
    dtype = y.dtype;
    channels_last = format == DataFormat::kNHWC;
    batch = extent(axes.batch);
    channels = extent(axes.channel);
    plane = extent(axes.height) * extent(axes.width);
  }

  void ComputeStatistics(const void* y, const Results& results) const {
    const auto count = static_cast<double>(batch * plane);
    const std::int64_t elements = batch * channels * plane;
    if (channels_last) {
      ParallelFor((channels + LaneSums::kLanes - 1) / LaneSums::kLanes, elements, [&](std::int64_t task) {
        const std::int64_t first = task * LaneSums::kLanes;
        const std::int64_t width = std::min(LaneSums::kLanes, channels - first);
        LaneSums sums;
        for (std::int64_t row = 0; row < batch * plane; ++row) sums.Add(dtype, y, row * channels + first, width);
        for (std::int64_t lane = 0; lane < width; ++lane) {
          results.Store(first + lane, sums.MomentsOfLane(lane, count));
        }
      });
      return;
    }
    ParallelFor(channels, elements, [&](std::int64_t channel) {
      LaneSums sums;
      for (std::int64_t image = 0; image < batch; ++image) {
        const std::int64_t begin = (image * channels + channel) * plane;
        for (std::int64_t at = 0; at < plane; at += LaneSums::kLanes) {
          sums.Add(dtype, y, begin + at, std::min(LaneSums::kLanes, plane - at));
        }
      }
      results.Store(channel, sums.MomentsOfAll(count));
    });
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateConvolutionStatistics(const KernelSpec& spec,
                                                                    const KernelOptions& options) {
  const absl::StatusOr<ConvolutionPart> part = ConvolutionPartOf(spec);
  if (!part.ok()) return part.status();
  absl::StatusOr<std::unique_ptr<Kernel>> convolution = CreateKernel(part->convolution, options);
  if (!convolution.ok()) return convolution.status();
  std::string choice = (*convolution)->choice();
  std::optional<WeightPacking> packing = (*convolution)->packing();
  const std::size_t kept = part->kept_bytes;
  const std::size_t workspace = kept + (*convolution)->workspace_bytes();
  auto run = [convolution = *std::move(convolution), image = ChannelImage(part->convolution), spec, kept,
              epsilon = spec.attributes.Get(attribute::kEpsilon)](const KernelOperands& operands) {
    const auto result = [&](std::size_t i) {
      return spec.uses(i) ? static_cast<float*>(operands.outputs[i]) : nullptr;
    };
    void* const y = kept > 0 ? operands.workspace : operands.outputs[0];
    convolution->Run({operands.inputs, &y, static_cast<std::byte*>(operands.workspace) + kept});
    image.ComputeStatistics(y, {result(1), result(2), result(3), epsilon});
  };
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = MakeKernel(std::move(run), workspace);
  if (!kernel.ok()) return kernel.status();
  return WithChoice(*std::move(kernel), std::move(choice), std::move(packing));
}

std::vector<std::string> StatisticsChoices(const KernelSpec& spec, const KernelOptions& options) {
  const absl::StatusOr<ConvolutionPart> part = ConvolutionPartOf(spec);
  return part.ok() ? CandidateChoices(part->convolution, options) : std::vector<std::string>();
}

}  // namespace

void RegisterConvolutionStatistics(Registry& registry) {
  registry.Add("conv2d_statistics", {CreateConvolutionStatistics, StatisticsChoices});
}

}  // namespace mpc::cpu
