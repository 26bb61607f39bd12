// Functions of axes and windows that are made of operations that exist. Each has the AMP classes of its parts. See
// frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc {

/// x with a new axis of extent 1 at place `axis` of the result. Data movement (Clear). Errors: an axis outside
/// [-rank - 1, rank].
Tensor expand_dims(const Tensor& x, std::int64_t axis);
/// As expand_dims, with PyTorch's name.
Tensor unsqueeze(const Tensor& x, std::int64_t axis);
/// x without the given axes, which have extent 1, or without all axes of extent 1 where none are given. Data movement
/// (Clear). Errors: an axis that x lacks, that has another extent or that is named twice. PyTorch keeps an axis of
/// another extent.
Tensor squeeze(const Tensor& x, const std::vector<std::int64_t>& axes = {});
/// x with its elements in reverse order along `axes`. Data movement (Clear). Errors: an axis that x lacks or that is
/// named twice.
Tensor flip(const Tensor& x, const std::vector<std::int64_t>& axes);
/// The i32 indices of the smallest elements along `axis`. A NaN is the smallest; of equal elements it is the first.
/// Comparison (Clear).
Tensor argmin(const Tensor& x, std::int64_t axis = -1);
/// log(sum(exp(x))) over `axes`, or over all where none are given, which no finite x makes overflow. Elements of minus
/// infinity add nothing, and rows of them alone give minus infinity with the derivative 0. An infinite element gives
/// infinity. Exponential, sum and logarithm are Deny. The maximum is Clear.
Tensor logsumexp(const Tensor& x, const std::vector<std::int64_t>& axes = {}, bool keep_dims = false);
/// Element i of the result is x at i, but for `axis`, where it is at indices[i]: y[i][j] = x[indices[i][j]][j] for axis
/// 0. `indices` are i32 or i64, of x's rank, and no longer than x on other axes. The result has their shape. An index
/// outside [0, extent) gives NaN, or zero where x is not floating. Data movement (Clear). Errors: indices of another
/// type, rank or size; more than 2^31 - 1 elements of x where indices are i32.
Tensor gather_elements(const Tensor& x, std::int64_t axis, const Tensor& indices);
/// [N, C r^2, H, W] -> [N, C, H r, W r] for r = upscale_factor. Each group of r^2 channels becomes squares of pixels.
/// Data movement (Clear). Errors: another rank, a factor below 1, channels that r^2 does not divide.
Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale_factor);

struct Pool1dOpOptions {
  std::int64_t kernel_size = 2;
  std::int64_t stride = 0;                     ///< 0: kernel_size
  std::string pad_mode = "valid";              ///< same, valid, pad
  std::vector<std::int64_t> padding = {0, 0};  ///< left, right
  bool count_include_pad = true;               ///< avg_pool1d only
};
/// The largest element of each window of x [N, C, L]. It is max_pool2d (Clear) on an image of one row, between reshapes
/// (Clear). Errors: another rank, another number of paddings.
Tensor max_pool1d(const Tensor& x, const Pool1dOpOptions& options = {});
/// The mean of each window of x [N, C, L]. It is avg_pool2d (Infer) on an image of one row, between reshapes (Clear).
/// Errors are those of max_pool1d.
Tensor avg_pool1d(const Tensor& x, const Pool1dOpOptions& options = {});

namespace ops {

using mpc::argmin, mpc::avg_pool1d, mpc::expand_dims, mpc::flip, mpc::gather_elements, mpc::logsumexp, mpc::max_pool1d,
    mpc::pixel_shuffle, mpc::squeeze, mpc::unsqueeze;

}  // namespace ops
}  // namespace mpc
