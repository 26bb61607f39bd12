// Layers made of functions of frontend/graph/composed_ops.h and of operations that exist. Each states the AMP classes
// of its parts, which docs/amp.md lists. Names and defaults are MindSpore's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/graph/adaptive_pool.h"
#include "frontend/graph/axis_ops.h"
#include "frontend/graph/cell.h"
#include "frontend/graph/composed_ops.h"
#include "frontend/graph/initializer.h"
#include "frontend/graph/ops.h"
#include "frontend/nn/layers.h"

namespace mpc::nn {

/// x where x > 0, else alpha * (exp(x) - 1). AMP classes: those of elu.
class ELU : public Cell {
 public:
  MPC_CELL(ELU)
  explicit ELU(double alpha = 1.0) : alpha_(alpha) {}
  Tensor Construct(const Tensor& x) { return elu(x, alpha_); }

 private:
  double alpha_;
};

/// log(1 + exp(x)). AMP classes: those of softplus.
class Softplus : public Cell {
 public:
  MPC_CELL(Softplus)
  Tensor Construct(const Tensor& x) { return softplus(x); }
};

/// x * tanh(softplus(x)). AMP classes: those of mish.
class Mish : public Cell {
 public:
  MPC_CELL(Mish)
  Tensor Construct(const Tensor& x) { return mish(x); }
};

/// x limited to [0, 6]. At a bound the gradient passes, as in clamp. AMP class: Clear, as that of clamp.
class ReLU6 : public Cell {
 public:
  MPC_CELL(ReLU6)
  Tensor Construct(const Tensor& x) { return clamp(x, 0, 6); }
};

/// min(max(x + 3, 0), 6) / 6. At a bound the gradient passes, as in clamp. Sum and product are Infer, clamp is Clear.
class HSigmoid : public Cell {
 public:
  MPC_CELL(HSigmoid)
  Tensor Construct(const Tensor& x) { return clamp(x + 3.0, 0, 6) * (1.0 / 6); }
};

/// The logarithm of softmax(x) along `axis`. AMP class: Deny, as that of log_softmax.
class LogSoftmax : public Cell {
 public:
  MPC_CELL(LogSoftmax)
  explicit LogSoftmax(std::int64_t axis = -1) : axis_(axis) {}
  Tensor Construct(const Tensor& x) { return log_softmax(x, axis_); }

 private:
  std::int64_t axis_;
};

/// [N, C r^2, H, W] -> [N, C, H r, W r] for r = upscale_factor. AMP classes and errors: those of pixel_shuffle.
class PixelShuffle : public Cell {
 public:
  MPC_CELL(PixelShuffle)
  explicit PixelShuffle(std::int64_t upscale_factor) : upscale_factor_(upscale_factor) {}
  Tensor Construct(const Tensor& x) { return pixel_shuffle(x, upscale_factor_); }

 private:
  std::int64_t upscale_factor_;
};

/// Divides by the root of the mean square over the last axis, of extent `dim`. gamma [dim] begins at one.
/// MindSpore has the function ops.rms_norm only. The layer's epsilon is that function's. AMP classes: those of
/// rms_norm. ToFloat does not make it low.
class RMSNorm : public Cell {
 public:
  MPC_CELL(RMSNorm, gamma)
  explicit RMSNorm(std::int64_t dim, double epsilon = 1e-6) : gamma({dim}, Ones()), epsilon_(epsilon) {}
  Tensor Construct(const Tensor& x) { return rms_norm(x, gamma, epsilon_); }
  Parameter gamma;

 private:
  double epsilon_;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = true;  ///< gamma and beta are trained
  Initializer gamma_init = Ones();
  Initializer beta_init = Zeros();
};

/// Normalises each channel of each sample of [N, C, H, W]. gamma and beta are [C]. It is group_norm with a group for
/// each channel, of the class norms. MindSpore's momentum, which its result does not depend on, is not there.
class InstanceNorm2d : public Cell {
 public:
  MPC_CELL(InstanceNorm2d, gamma, beta)
  explicit InstanceNorm2d(std::int64_t num_features, const InstanceNormOptions& options = {});
  Tensor Construct(const Tensor& x);
  Parameter gamma;
  Parameter beta;

 private:
  std::int64_t num_features_;
  double eps_;
};

struct Conv1dOptions {
  std::int64_t stride = 1;
  std::string pad_mode = "same";            ///< same, valid, pad
  std::vector<std::int64_t> padding = {0};  ///< for "pad": one value, or left, right
  std::int64_t dilation = 1;
  std::int64_t group = 1;
  bool has_bias = false;
  std::optional<Initializer> weight_init;  ///< HeUniform(sqrt(5))
  std::optional<Initializer> bias_init;    ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in))
};

/// 1-D convolution: [N, in, L] -> [N, out, L']. weight [out, in / group, kernel_size], as in PyTorch; MindSpore's has
/// another axis of extent 1. bias [out]. AMP classes: those of conv1d.
class Conv1d : public Cell {
 public:
  MPC_CELL(Conv1d, weight, bias)
  Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
         const Conv1dOptions& options = {});
  Tensor Construct(const Tensor& x);
  Parameter weight;
  Parameter bias;

 private:
  std::int64_t in_channels_;
  Conv1dOpOptions options_;
};

struct Conv1dTransposeOptions {
  std::int64_t stride = 1;
  std::string pad_mode = "same";            ///< same, valid, pad
  std::vector<std::int64_t> padding = {0};  ///< for "pad": one value, or left, right; removed from the result
  std::int64_t output_padding = 0;          ///< added at the end, smaller than the stride
  std::int64_t dilation = 1;
  std::int64_t group = 1;
  bool has_bias = false;
  std::optional<Initializer> weight_init;  ///< HeUniform(sqrt(5))
  std::optional<Initializer> bias_init;    ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in))
};

/// Transposed 1-D convolution: [N, in, L] -> [N, out, L']. weight [in, out / group, kernel_size], as in PyTorch;
/// MindSpore's has another axis of extent 1. bias [out]. L' is as in conv_transpose2d, which is Allow and computes it
/// on an image of one row, between reshapes (Clear). MindSpore has no output_padding. Errors: another rank or number of
/// channels, a group that does not divide both numbers of channels, and those of conv_transpose2d.
class Conv1dTranspose : public Cell {
 public:
  MPC_CELL(Conv1dTranspose, weight, bias)
  Conv1dTranspose(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
                  const Conv1dTransposeOptions& options = {});
  Tensor Construct(const Tensor& x);
  Parameter weight;
  Parameter bias;

 private:
  std::int64_t in_channels_;
  std::int64_t out_channels_;
  Conv1dTransposeOptions options_;
};

struct Pool1dOptions {
  std::int64_t kernel_size = 1;
  std::int64_t stride = 1;                  ///< 0: kernel_size
  std::string pad_mode = "valid";           ///< same, valid, pad
  std::vector<std::int64_t> padding = {0};  ///< for "pad": one value, or left, right
  bool count_include_pad = true;            ///< AvgPool1d only
};

/// The largest element of each window of sequences [N, C, L]. MindSpore's dilation, return_indices and ceil_mode are
/// not there. AMP classes and errors: those of max_pool1d.
class MaxPool1d : public Cell {
 public:
  MPC_CELL(MaxPool1d)
  explicit MaxPool1d(const Pool1dOptions& options = {});
  Tensor Construct(const Tensor& x) { return max_pool1d(x, options_); }

 private:
  Pool1dOpOptions options_;
};

/// The mean of each window of sequences [N, C, L]. MindSpore's ceil_mode is not there. AMP classes and errors: those of
/// avg_pool1d.
class AvgPool1d : public Cell {
 public:
  MPC_CELL(AvgPool1d)
  explicit AvgPool1d(const Pool1dOptions& options = {});
  Tensor Construct(const Tensor& x) { return avg_pool1d(x, options_); }

 private:
  Pool1dOpOptions options_;
};

/// The mean over windows that give an image of the size `output_size`, where -1 keeps an extent. AMP classes: those of
/// adaptive_avg_pool2d.
class AdaptiveAvgPool2d : public Cell {
 public:
  MPC_CELL(AdaptiveAvgPool2d)
  explicit AdaptiveAvgPool2d(Size2d output_size) : output_size_(output_size) {}
  Tensor Construct(const Tensor& x) { return adaptive_avg_pool2d(x, output_size_.values()); }

 private:
  Size2d output_size_;
};

/// The maximum over the same windows. AMP classes: those of adaptive_max_pool2d.
class AdaptiveMaxPool2d : public Cell {
 public:
  MPC_CELL(AdaptiveMaxPool2d)
  explicit AdaptiveMaxPool2d(Size2d output_size) : output_size_(output_size) {}
  Tensor Construct(const Tensor& x) { return adaptive_max_pool2d(x, output_size_.values()); }

 private:
  Size2d output_size_;
};

}  // namespace mpc::nn
