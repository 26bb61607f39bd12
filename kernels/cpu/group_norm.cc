// group_norm and group_norm_grad for NCHW and NHWC. Everything follows from sums over each channel of each sample,
// which are taken in f32. They are then added in order: within groups for statistics and dx, over samples for dgamma
// and dbeta.
#include <cmath>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/window.h"

namespace mpc::cpu {
namespace {

/// Runs of contiguous elements. The parameter's index steps by 0 along a run in NCHW (one channel), and by 1 in NHWC (a
/// channel for each element).
struct GroupView {
  std::int64_t batch, channels, groups, plane;
  bool channels_last;

  static constexpr std::int64_t kRun = kBlock / 2;

  explicit GroupView(const KernelSpec& spec, const Shape& x) {
    const DataFormat format = spec.attributes.Get(attribute::kDataFormat);
    const ImageAxes axes = AxesOf(format);
    batch = x[static_cast<std::size_t>(axes.batch)];
    channels = x[static_cast<std::size_t>(axes.channel)];
    groups = spec.attributes.Get(attribute::kGroups);
    plane = x[static_cast<std::size_t>(axes.height)] * x[static_cast<std::size_t>(axes.width)];
    channels_last = format == DataFormat::kNHWC;
  }

  std::int64_t channels_per_group() const { return channels / groups; }
  std::int64_t elements_per_group() const { return channels_per_group() * plane; }
  std::size_t per_channel() const { return static_cast<std::size_t>(batch * channels); }

  /// kSums sums over each channel of each sample: totals[k][n * channels + c]. begin(n * channels + c) prepares the
  /// parameters of the channels from c on and returns add(offset, size, sums).
  template <int kSums, typename Begin>
  void Sum(const std::array<float*, kSums>& totals, const Begin& begin) const {
    if (!channels_last) {
      ParallelFor(batch * channels, batch * channels * plane, [&](std::int64_t channel) {
        float sums[kSums][kRun] = {};
        const auto add = begin(channel, std::int64_t{1});
        for (std::int64_t start = 0; start < plane; start += kRun) {
          add(channel * plane + start, std::min(kRun, plane - start), sums);
        }
        for (int k = 0; k < kSums; ++k) totals[k][channel] = SumOf(sums[k], std::min(kRun, plane));
      });
      return;
    }
    ForEachColumnBlock([&](std::int64_t sample, std::int64_t column, std::int64_t width) {
      float sums[kSums][kRun] = {};
      const std::int64_t channel = sample * channels + column;
      const auto add = begin(channel, width);
      for (std::int64_t pixel = 0; pixel < plane; ++pixel) {
        add((sample * plane + pixel) * channels + column, width, sums);
      }
      for (int k = 0; k < kSums; ++k) std::copy_n(sums[k], width, totals[k] + channel);
    });
  }

  /// Visits every run once: begin as for Sum returns visit(offset, size).
  template <typename Begin>
  void Visit(const Begin& begin) const {
    if (!channels_last) {
      ParallelFor(batch * channels, batch * channels * plane, [&](std::int64_t channel) {
        const auto visit = begin(channel, std::int64_t{1});
        for (std::int64_t start = 0; start < plane; start += kRun) {
          visit(channel * plane + start, std::min(kRun, plane - start));
        }
      });
      return;
    }
    ForEachColumnBlock([&](std::int64_t sample, std::int64_t column, std::int64_t width) {
      const auto visit = begin(sample * channels + column, width);
      for (std::int64_t pixel = 0; pixel < plane; ++pixel) {
        visit((sample * plane + pixel) * channels + column, width);
      }
    });
  }

  /// A parameter of each element of a run, from values for each channel of each sample.
  struct Expanded {
    alignas(64) float values[kRun];
    void Fill(const GroupView& view, const float* parameter, std::int64_t channel, std::int64_t width) {
      if (view.channels_last) {
        std::copy_n(parameter + channel, width, values);
      } else {
        std::fill_n(values, std::min(kRun, view.plane), parameter[channel]);
      }
    }
  };

 private:
  template <typename Body>
  void ForEachColumnBlock(const Body& body) const {
    const std::int64_t blocks = (channels + kRun - 1) / kRun;
    ParallelFor(batch * blocks, batch * channels * plane, [&](std::int64_t task) {
      const std::int64_t column = task % blocks * kRun;
      body(task / blocks, column, std::min(kRun, channels - column));
    });
  }
};

using Expanded = GroupView::Expanded;
constexpr std::int64_t kRun = GroupView::kRun;

// Adds the per-channel values of each group and divides by its elements; every channel of the group gets the result.
void GroupMeans(const GroupView& view, float* per_channel) {
  const std::int64_t channels = view.channels_per_group();
  for (std::int64_t group = 0; group < view.batch * view.groups; ++group) {
    float* const values = per_channel + group * channels;
    std::fill_n(values, channels, SumOf(values, channels) / static_cast<float>(view.elements_per_group()));
  }
}

void GroupStatistics(const GroupView& view, Source x, float* mean, float* variance) {
  view.Sum<1>({mean}, [&](std::int64_t, std::int64_t) {
    return [x](std::int64_t offset, std::int64_t size, float(*sums)[kRun]) {
      float buffer[kRun];
      const float* values = x.Load(offset, size, buffer);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) sums[0][i] += values[i];
    };
  });
  GroupMeans(view, mean);
  view.Sum<1>({variance}, [&](std::int64_t channel, std::int64_t width) {
    Expanded center;
    center.Fill(view, mean, channel, width);
    return [x, center](std::int64_t offset, std::int64_t size, float(*sums)[kRun]) {
      float buffer[kRun];
      const float* values = x.Load(offset, size, buffer);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        const float difference = values[i] - center.values[i];
        sums[0][i] += difference * difference;
      }
    };
  });
  GroupMeans(view, variance);
}

// y = (x - mean) * scale + shift, all by channel.
void Normalize(const GroupView& view, Source x, Sink y, const float* mean, const float* scale, const float* shift) {
  view.Visit([&](std::int64_t channel, std::int64_t width) {
    struct Parameters {
      Expanded mean, scale, shift;
    } p;
    p.mean.Fill(view, mean, channel, width);
    p.scale.Fill(view, scale, channel, width);
    p.shift.Fill(view, shift, channel, width);
    return [p, x, y](std::int64_t offset, std::int64_t size) {
      float x_buffer[kRun], y_buffer[kRun];
      const float* values = x.Load(offset, size, x_buffer);
      float* target = y.Target(offset, y_buffer);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        target[i] = (values[i] - p.mean.values[i]) * p.scale.values[i] + p.shift.values[i];
      }
      y.Commit(offset, size, target);
    };
  });
}

// A statistic of each group, of which every channel has a copy.
void StoreGroups(const GroupView& view, const float* per_channel, void* result) {
  for (std::int64_t group = 0; group < view.batch * view.groups; ++group) {
    static_cast<float*>(result)[group] = per_channel[group * view.channels_per_group()];
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGroupNorm(const KernelSpec& spec) {
  const GroupView view(spec, spec.inputs[0].shape);
  const auto run = [view, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                    used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)},
                    epsilon = spec.attributes.Get(attribute::kEpsilon)](const KernelOperands& operands) {
    const Source x{in, operands.inputs[0]};
    const auto* gamma = static_cast<const float*>(operands.inputs[1]);
    const auto* beta = static_cast<const float*>(operands.inputs[2]);
    float* const mean = static_cast<float*>(operands.workspace);
    float* const scale = mean + view.per_channel();
    float* const shift = scale + view.per_channel();
    GroupStatistics(view, x, mean, scale);
    for (std::size_t i = 0; i < view.per_channel(); ++i) scale[i] = 1.0f / std::sqrt(scale[i] + epsilon);
    if (used[1]) StoreGroups(view, mean, operands.outputs[1]);
    if (used[2]) StoreGroups(view, scale, operands.outputs[2]);
    if (!used[0]) return;
    for (std::size_t i = 0; i < view.per_channel(); ++i) {
      const std::size_t c = i % static_cast<std::size_t>(view.channels);
      scale[i] *= gamma[c];
      shift[i] = beta[c];
    }
    Normalize(view, x, {out, operands.outputs[0]}, mean, scale, shift);
  };
  return MakeKernel(run, 3 * view.per_channel() * sizeof(float));
}

// sum dy and sum dy * (x - mean) of each channel of each sample.
void CotangentSums(const GroupView& view, Source dy, Source x, const float* mean, float* plain, float* centred) {
  view.Sum<2>({plain, centred}, [&](std::int64_t channel, std::int64_t width) {
    Expanded center;
    center.Fill(view, mean, channel, width);
    return [dy, x, center](std::int64_t offset, std::int64_t size, float(*sums)[kRun]) {
      float dy_buffer[kRun], x_buffer[kRun];
      const float* dy_values = dy.Load(offset, size, dy_buffer);
      const float* x_values = x.Load(offset, size, x_buffer);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        sums[0][i] += dy_values[i];
        sums[1][i] += dy_values[i] * (x_values[i] - center.values[i]);
      }
    };
  });
}

// dx = dy * scale - shift - (x - mean) * slope, all by channel.
void InputGradient(const GroupView& view, Source dy, Source x, Sink dx, const std::array<const float*, 4>& parameters) {
  view.Visit([&](std::int64_t channel, std::int64_t width) {
    std::array<Expanded, 4> p;
    for (std::size_t k = 0; k < 4; ++k) p[k].Fill(view, parameters[k], channel, width);
    return [p, dy, x, dx](std::int64_t offset, std::int64_t size) {
      float dy_buffer[kRun], x_buffer[kRun], dx_buffer[kRun];
      const float* dy_values = dy.Load(offset, size, dy_buffer);
      const float* x_values = x.Load(offset, size, x_buffer);
      float* target = dx.Target(offset, dx_buffer);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        const float centred = x_values[i] - p[0].values[i];
        target[i] = dy_values[i] * p[1].values[i] - p[2].values[i] - centred * p[3].values[i];
      }
      dx.Commit(offset, size, target);
    };
  });
}

// The operands are dy, x, gamma, mean and inv_std.
absl::StatusOr<std::unique_ptr<Kernel>> CreateGroupNormGrad(const KernelSpec& spec) {
  const GroupView view(spec, spec.inputs[1].shape);
  const auto run =
      [view, dy_type = spec.inputs[0].dtype, x_type = spec.inputs[1].dtype, dx_type = spec.outputs[0].dtype,
       used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)}](const KernelOperands& operands) {
        const Source dy{dy_type, operands.inputs[0]};
        const Source x{x_type, operands.inputs[1]};
        const auto* gamma = static_cast<const float*>(operands.inputs[2]);
        const auto* group_mean = static_cast<const float*>(operands.inputs[3]);
        const auto* group_inv_std = static_cast<const float*>(operands.inputs[4]);
        const std::size_t channels = static_cast<std::size_t>(view.channels);
        const std::size_t group_size = static_cast<std::size_t>(view.channels_per_group());
        float* const mean = static_cast<float*>(operands.workspace);
        float* const scale = mean + view.per_channel();
        float* const shift = scale + view.per_channel();
        float* const slope = shift + view.per_channel();
        // ---- Sums of channels
        for (std::size_t i = 0; i < view.per_channel(); ++i) mean[i] = group_mean[i / group_size];
        CotangentSums(view, dy, x, mean, shift, slope);
        // ---- Gradients of gamma and beta, and the terms of the groups
        for (std::size_t i = 0; i < 2; ++i) {
          if (used[i + 1]) std::fill_n(static_cast<float*>(operands.outputs[i + 1]), channels, 0.0f);
        }
        for (std::size_t i = 0; i < view.per_channel(); ++i) {
          const std::size_t c = i % channels;
          const float inv_std = group_inv_std[i / group_size];
          if (used[1]) static_cast<float*>(operands.outputs[1])[c] += slope[i] * inv_std;
          if (used[2]) static_cast<float*>(operands.outputs[2])[c] += shift[i];
          shift[i] *= gamma[c];
          slope[i] *= gamma[c];
          scale[i] = gamma[c] * inv_std;
        }
        // ---- Gradient of x
        if (!used[0]) return;
        GroupMeans(view, shift);
        GroupMeans(view, slope);
        for (std::size_t i = 0; i < view.per_channel(); ++i) {
          const float inv_std = group_inv_std[i / group_size];
          shift[i] *= inv_std;
          slope[i] *= inv_std * inv_std * inv_std;
        }
        InputGradient(view, dy, x, {dx_type, operands.outputs[0]}, {mean, scale, shift, slope});
      };
  return MakeKernel(run, 4 * view.per_channel() * sizeof(float));
}

}  // namespace

void RegisterGroupNorm(Registry& registry) {
  registry.Add("group_norm", CreateGroupNorm, {{0, 0}});
  registry.Add("group_norm_grad", CreateGroupNormGrad, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cpu
