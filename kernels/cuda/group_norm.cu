// group_norm and group_norm_grad for NCHW and NHWC. Everything follows from sums over each channel of each sample,
// which are then added within groups (statistics, dx) and over samples (dgamma, dbeta). The statistics come from one
// pass, see scalar/moments.h.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cuda/channels.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/moments.h"

namespace mpc::cuda {
namespace {

using scalar::SumOp;

/// Two sums of each channel of each sample.
template <typename T>
struct ChannelSums {
  T *first, *second;

  __device__ void operator()(std::int64_t result, const T (&sums)[2]) const {
    first[result] = sums[0];
    second[result] = sums[1];
  }
};

/// Terms of RowReduce over the channels of a group: their sums.
struct MomentsOfGroup {
  ChannelSums<double> sums;
  std::int64_t group_channels;

  template <int kWidth>
  struct Row {
    const double *first, *second;
    __device__ __forceinline__ void Add(std::int64_t, std::int64_t index, double (&values)[2]) const {
      for (int i = 0; i < kWidth; ++i) {
        values[0] += first[index + i];
        values[1] += second[index + i];
      }
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Row<kWidth> RowAt(std::int64_t group) const {
    return {sums.first + group * group_channels, sums.second + group * group_channels};
  }
};

struct StoreStatistics {
  float *mean, *inv_std;
  float *mean_result, *inv_std_result;  ///< null: not wanted
  double count;
  float epsilon;

  __device__ void operator()(std::int64_t group, const double (&sums)[2]) const {
    const auto moments = scalar::Moments<float>::FromSums(sums[0], sums[1], count);
    mean[group] = moments.mean;
    inv_std[group] = 1.0f / std::sqrt(moments.variance + epsilon);
    if (mean_result != nullptr) mean_result[group] = mean[group];
    if (inv_std_result != nullptr) inv_std_result[group] = inv_std[group];
  }
};

/// y = (x - mean) * inv_std * gamma + beta.
struct Normalize {
  struct Parameters {
    float mean, scale, beta;
  };
  const float *mean, *inv_std, *gamma, *beta;
  std::int64_t channels, group_channels;

  __device__ Parameters Load(std::int64_t result) const {
    const std::int64_t group = result / group_channels;
    const std::int64_t channel = result % channels;
    return {mean[group], inv_std[group] * gamma[channel], beta[channel]};
  }
  __device__ static float Apply(const Parameters& p, const float (&x)[1]) { return (x[0] - p.mean) * p.scale + p.beta; }
};

/// A norm's shape.
struct Groups {
  ChannelView view;
  std::int64_t group_channels;

  Groups(const KernelSpec& spec, const Shape& x)
      : view(x, spec.attributes.Get(attribute::kDataFormat), /*by_sample=*/true),
        group_channels(view.channels / spec.attributes.Get(attribute::kGroups)) {}

  /// Rows that share statistics.
  std::int64_t count() const { return view.results() / group_channels; }
  std::int64_t elements_per_group() const { return group_channels * view.plane; }
  RowPlan Rows() const { return RowPlan::For(count(), 1, group_channels); }
};

/// Consecutive arrays in a workspace, the widest type first.
class Carve {
 public:
  explicit Carve(void* workspace) : next_(static_cast<unsigned char*>(workspace)) {}
  template <typename T>
  T* Take(std::int64_t count) {
    T* const array = reinterpret_cast<T*>(next_);
    next_ += static_cast<std::size_t>(count) * sizeof(T);
    return array;
  }

 private:
  unsigned char* next_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateGroupNorm(const KernelSpec& spec, const KernelContext&) {
  const Groups groups(spec, spec.inputs[0].shape);
  const std::size_t partial_bytes =
      std::max(groups.view.workspace_bytes<double>(2), groups.Rows().workspace_bytes<double>(2));
  const auto run = [groups, partial_bytes, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                    used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)},
                    epsilon = spec.attributes.Get(attribute::kEpsilon)](const KernelOperands& operands,
                                                                        LaunchQueue& queue) -> absl::Status {
    const ChannelView& view = groups.view;
    const Source x{operands.inputs[0], in};
    const auto result = [&](std::size_t i) { return used[i] ? static_cast<float*>(operands.outputs[i]) : nullptr; };
    // ---- Workspace
    Carve carve(static_cast<unsigned char*>(operands.workspace) + partial_bytes);
    ChannelSums<double> sums;
    sums.first = carve.Take<double>(view.results());
    sums.second = carve.Take<double>(view.results());
    float* mean = carve.Take<float>(groups.count());
    float* inv_std = carve.Take<float>(groups.count());
    // ---- Sums of channels, then statistics of groups
    const absl::Status summed = ChannelReduce<double, 1, 2>(queue, view, {{x}}, MomentSums(), sums, operands.workspace);
    if (!summed.ok()) return summed;
    const StoreStatistics store{mean,   inv_std, result(1), result(2), static_cast<double>(groups.elements_per_group()),
                                epsilon};
    const absl::Status stored = RowReduce<SumOp<double>, 2>(
        queue, groups.Rows(), MomentsOfGroup{sums, groups.group_channels}, store, operands.workspace);
    if (!stored.ok() || !used[0]) return stored;
    // ---- Normalised elements
    return ChannelMap<1>(
        queue, view, {{x}, {operands.outputs[0], out}},
        Normalize{mean, inv_std, static_cast<const float*>(operands.inputs[1]),
                  static_cast<const float*>(operands.inputs[2]), view.channels, groups.group_channels});
  };
  return MakeKernel(run, partial_bytes + 2 * static_cast<std::size_t>(groups.view.results()) * sizeof(double) +
                             2 * static_cast<std::size_t>(groups.count()) * sizeof(float));
}

/// Sums of dy and of dy * (x - mean).
struct CotangentSums {
  struct Parameters {
    float mean;
  };
  const float* mean;
  std::int64_t group_channels;

  __device__ Parameters Load(std::int64_t result) const { return {mean[result / group_channels]}; }
  __device__ static __forceinline__ void Add(const Parameters& p, const float (&x)[2], float (&sums)[2]) {
    sums[0] += x[0];
    sums[1] += x[0] * (x[1] - p.mean);
  }
};

/// Terms of ColumnReduce over the samples: those of dbeta and dgamma.
struct ParameterTerms {
  ChannelSums<float> sums;
  const float* inv_std;
  std::int64_t channels, group_channels;

  template <int kWidth>
  struct Columns {
    struct Loaded {};
    const ParameterTerms& terms;
    std::int64_t column;

    __device__ __forceinline__ Loaded Load(std::int64_t) const { return {}; }
    __device__ __forceinline__ void Add(const Loaded&, std::int64_t row, float (&values)[2][kWidth]) const {
      for (int i = 0; i < kWidth; ++i) {
        const std::int64_t result = row * terms.channels + column + i;
        values[0][i] += terms.sums.first[result];
        values[1][i] += terms.sums.second[result] * terms.inv_std[result / terms.group_channels];
      }
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Columns<kWidth> ColumnsAt(std::int64_t, std::int64_t column) const {
    return {*this, column};
  }
};

struct StoreParameterGradients {
  float *dgamma, *dbeta;  ///< null: not wanted
  __device__ void operator()(std::int64_t channel, const float (&values)[2]) const {
    if (dbeta != nullptr) dbeta[channel] = values[0];
    if (dgamma != nullptr) dgamma[channel] = values[1];
  }
};

/// Terms of RowReduce over the channels of a group: their sums times gamma.
struct CotangentsOfGroup {
  ChannelSums<float> sums;
  const float* gamma;
  std::int64_t channels, group_channels;

  template <int kWidth>
  struct Row {
    const CotangentsOfGroup& terms;
    std::int64_t first;
    __device__ __forceinline__ void Add(std::int64_t, std::int64_t index, float (&values)[2]) const {
      for (int i = 0; i < kWidth; ++i) {
        const std::int64_t result = first + index + i;
        const float gamma = terms.gamma[result % terms.channels];
        values[0] += terms.sums.first[result] * gamma;
        values[1] += terms.sums.second[result] * gamma;
      }
    }
  };
  template <int kWidth>
  __device__ __forceinline__ Row<kWidth> RowAt(std::int64_t group) const {
    return {*this, group * group_channels};
  }
};

struct StoreGroupGradients {
  float *shift, *slope;
  const float* inv_std;
  float count;

  __device__ void operator()(std::int64_t group, const float (&values)[2]) const {
    const float scale = inv_std[group];
    shift[group] = values[0] / count * scale;
    slope[group] = values[1] / count * (scale * scale * scale);
  }
};

/// dx = dy * gamma * inv_std - shift - (x - mean) * slope.
struct InputGradient {
  struct Parameters {
    float mean, scale, shift, slope;
  };
  const float *mean, *inv_std, *gamma, *shift, *slope;
  std::int64_t channels, group_channels;

  __device__ Parameters Load(std::int64_t result) const {
    const std::int64_t group = result / group_channels;
    return {mean[group], gamma[result % channels] * inv_std[group], shift[group], slope[group]};
  }
  __device__ static float Apply(const Parameters& p, const float (&x)[2]) {
    return x[0] * p.scale - p.shift - (x[1] - p.mean) * p.slope;
  }
};

// The operands are dy, x, gamma, mean and inv_std.
absl::StatusOr<std::unique_ptr<Kernel>> CreateGroupNormGrad(const KernelSpec& spec, const KernelContext&) {
  const Groups groups(spec, spec.inputs[1].shape);
  const ColumnPlan samples = ColumnPlan::For(1, groups.view.samples, groups.view.channels);
  const std::size_t partial_bytes =
      std::max({groups.view.workspace_bytes<float>(2), groups.Rows().workspace_bytes<float>(2),
                samples.workspace_bytes<float>(2)});
  const auto run = [groups, samples, partial_bytes, dy_type = spec.inputs[0].dtype, x_type = spec.inputs[1].dtype,
                    dx_type = spec.outputs[0].dtype,
                    used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)}](
                       const KernelOperands& operands, LaunchQueue& queue) -> absl::Status {
    const ChannelView& view = groups.view;
    const Source dy{operands.inputs[0], dy_type};
    const Source x{operands.inputs[1], x_type};
    const auto* gamma = static_cast<const float*>(operands.inputs[2]);
    const auto* mean = static_cast<const float*>(operands.inputs[3]);
    const auto* inv_std = static_cast<const float*>(operands.inputs[4]);
    const auto result = [&](std::size_t i) { return used[i] ? static_cast<float*>(operands.outputs[i]) : nullptr; };
    // ---- Workspace
    Carve carve(static_cast<unsigned char*>(operands.workspace) + partial_bytes);
    ChannelSums<float> sums;
    sums.first = carve.Take<float>(view.results());
    sums.second = carve.Take<float>(view.results());
    float* shift = carve.Take<float>(groups.count());
    float* slope = carve.Take<float>(groups.count());
    // ---- Sums of channels
    // The sums come first, since dx may lie where dy or x do.
    const absl::Status summed = ChannelReduce<float, 2, 2>(
        queue, view, {{dy, x}}, CotangentSums{mean, groups.group_channels}, sums, operands.workspace);
    if (!summed.ok()) return summed;
    // ---- Gradients of gamma and beta
    if (used[1] || used[2]) {
      const absl::Status stored = ColumnReduce<SumOp<float>, 2>(
          queue, samples, ParameterTerms{sums, inv_std, view.channels, groups.group_channels},
          StoreParameterGradients{result(1), result(2)}, operands.workspace);
      if (!stored.ok()) return stored;
    }
    // ---- Gradient of x
    if (!used[0]) return absl::OkStatus();
    const absl::Status scaled = RowReduce<SumOp<float>, 2>(
        queue, groups.Rows(), CotangentsOfGroup{sums, gamma, view.channels, groups.group_channels},
        StoreGroupGradients{shift, slope, inv_std, static_cast<float>(groups.elements_per_group())},
        operands.workspace);
    if (!scaled.ok()) return scaled;
    return ChannelMap<2>(queue, view, {{dy, x}, {operands.outputs[0], dx_type}},
                         InputGradient{mean, inv_std, gamma, shift, slope, view.channels, groups.group_channels});
  };
  return MakeKernel(
      run, partial_bytes + 2 * static_cast<std::size_t>(groups.view.results() + groups.count()) * sizeof(float));
}

}  // namespace

void RegisterGroupNorm(Registry& registry) {
  registry.Add("group_norm", CreateGroupNorm, {{0, 0}});
  registry.Add("group_norm_grad", CreateGroupNormGrad, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cuda
