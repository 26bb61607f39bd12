#include "frontend/nn/composed_layers.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/sequence_ops.h"
#include "frontend/nn/channel_groups.h"
#include "frontend/nn/uniform_below.h"

namespace mpc::nn {

using mpc::internal::FailWith;

namespace {

/// `padding` as left and right, where one value stands for both.
std::vector<std::int64_t> TwoSides(std::vector<std::int64_t> padding) {
  if (padding.size() == 1) padding.push_back(padding[0]);
  return padding;
}

Pool1dOpOptions PoolOptions(const Pool1dOptions& options) {
  return {.kernel_size = options.kernel_size,
          .stride = options.stride,
          .pad_mode = options.pad_mode,
          .padding = TwoSides(options.padding),
          .count_include_pad = options.count_include_pad};
}

}  // namespace

InstanceNorm2d::InstanceNorm2d(std::int64_t num_features, const InstanceNormOptions& options)
    : gamma({num_features}, options.gamma_init, {.requires_grad = options.affine}),
      beta({num_features}, options.beta_init, {.requires_grad = options.affine}),
      num_features_(num_features),
      eps_(options.eps) {}

Tensor InstanceNorm2d::Construct(const Tensor& x) {
  if (x.rank() != 4 || x.dim(1) != num_features_) {
    return FailWith(absl::StrCat("InstanceNorm2d expects a rank-4 tensor with ", num_features_,
                                 " channels on axis 1, got ", x.spec().ToString()),
                    x.shape());
  }
  return group_norm(x, gamma, beta, num_features_, eps_);
}

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
               const Conv1dOptions& options)
    : in_channels_(in_channels),
      options_{.stride = options.stride,
               .pad_mode = options.pad_mode,
               .padding = TwoSides(options.padding),
               .dilation = options.dilation,
               .group = options.group} {
  const std::int64_t group_channels = in_channels / std::max<std::int64_t>(1, options.group);
  weight =
      Parameter({out_channels, group_channels, kernel_size}, options.weight_init.value_or(HeUniform(std::sqrt(5.0))));
  if (options.has_bias) {
    bias = Parameter({out_channels}, options.bias_init.value_or(UniformBelow(group_channels * kernel_size)));
  }
}

Tensor Conv1d::Construct(const Tensor& x) {
  if (x.rank() != 3 || x.dim(1) != in_channels_) {
    return FailWith(
        absl::StrCat("Conv1d expects sequences [N, C, L] with ", in_channels_, " channels, got ", x.spec().ToString()),
        {1, weight.shape()[0], 1});
  }
  return conv1d(x, weight, bias.defined() ? bias.Read() : Tensor(), options_);
}

Conv1dTranspose::Conv1dTranspose(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel_size,
                                 const Conv1dTransposeOptions& options)
    : in_channels_(in_channels), out_channels_(out_channels), options_(options) {
  options_.padding = TwoSides(options.padding);
  const std::int64_t group_channels = out_channels / std::max<std::int64_t>(1, options.group);
  weight =
      Parameter({in_channels, group_channels, kernel_size}, options.weight_init.value_or(HeUniform(std::sqrt(5.0))));
  if (options.has_bias) {
    bias = Parameter({out_channels}, options.bias_init.value_or(UniformBelow(group_channels * kernel_size)));
  }
}

Tensor Conv1dTranspose::Construct(const Tensor& x) {
  if (std::string error = internal::GroupError("Conv1dTranspose", options_.group, in_channels_, out_channels_);
      !error.empty()) {
    return FailWith(error, {1, 1, 1});
  }
  if (x.rank() != 3 || x.dim(1) != in_channels_ || options_.padding.size() != 2) {
    return FailWith(absl::StrCat("Conv1dTranspose expects sequences [N, C, L] with ", in_channels_,
                                 " channels and a padding of one or two values, got ", x.spec().ToString(), " and ",
                                 options_.padding.size(), " values"),
                    {1, 1, 1});
  }
  const Tensor w = weight;
  const Tensor y =
      conv_transpose2d(reshape(x, {x.dim(0), x.dim(1), 1, x.dim(2)}), reshape(w, {w.dim(0), w.dim(1), 1, w.dim(2)}),
                       bias.defined() ? bias.Read() : Tensor(),
                       {.stride = {1, options_.stride},
                        .pad_mode = options_.pad_mode,
                        .padding = {0, 0, options_.padding[0], options_.padding[1]},
                        .output_padding = {0, options_.output_padding},
                        .dilation = {1, options_.dilation},
                        .group = options_.group});
  return reshape(y, {y.dim(0), y.dim(1), y.dim(3)});
}

MaxPool1d::MaxPool1d(const Pool1dOptions& options) : options_(PoolOptions(options)) {}
AvgPool1d::AvgPool1d(const Pool1dOptions& options) : options_(PoolOptions(options)) {}

}  // namespace mpc::nn
