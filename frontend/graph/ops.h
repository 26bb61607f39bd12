// Operations on tensors: functions found by argument-dependent lookup, operators, and namespace `ops`.
//
// Inside `Construct` they record into the graph; on concrete tensors they compile and run at once. Errors are kept in
// the trace (with the Cell path) or in the returned tensor (`status()`). Formulas, shapes and types: docs/dialect.md.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/graph/cell.h"
#include "frontend/graph/gradient_ops.h"
#include "frontend/graph/tensor.h"

namespace mpc {

// Element-wise.
/// x where x > 0, else 0. The derivative at 0 is 0.
Tensor relu(const Tensor& x);
/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Tensor& x);
/// The hyperbolic tangent.
Tensor tanh(const Tensor& x);
/// e^x.
Tensor exp(const Tensor& x);
/// The natural logarithm.
Tensor log(const Tensor& x);
/// The square root.
Tensor sqrt(const Tensor& x);
/// -x.
Tensor neg(const Tensor& x);
/// x * x.
Tensor square(const Tensor& x);
/// |x|; the derivative at 0 is 0.
Tensor abs(const Tensor& x);
/// The largest integer <= x; its derivative is zero.
Tensor floor(const Tensor& x);
/// log(1 + x), exact for small x.
Tensor log1p(const Tensor& x);
/// The sine of x in radians.
Tensor sin(const Tensor& x);
/// The cosine of x in radians.
Tensor cos(const Tensor& x);
/// x * sigmoid(x).
Tensor silu(const Tensor& x);
/// x * min(max(x + 3, 0), 6) / 6.
Tensor hard_swish(const Tensor& x);
/// The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
Tensor erf(const Tensor& x);
/// x times the cumulative standard normal distribution at x; `approximate`: "none", or "tanh" for its tanh form.
Tensor gelu(const Tensor& x, const std::string& approximate = "none");
/// x where x > 0, else alpha * x.
Tensor leaky_relu(const Tensor& x, double alpha = 0.2);
/// As leaky_relu with trained slopes: alpha is [C], one a channel (axis 1), or [1].
Tensor prelu(const Tensor& x, const Tensor& alpha);
/// x^exponent; NaN for a negative x where the exponent is fractional.
Tensor pow(const Tensor& x, double exponent);
/// x limited to [minimum, maximum]. At a bound the gradient passes, as inside.
Tensor clamp(const Tensor& x, double minimum, double maximum);
// add, sub, mul, maximum, minimum, neg and abs also take integers, i32 or i64, all of one type. Results wrap, and no
// gradient goes through them.
/// a + b.
Tensor add(const Tensor& a, const Tensor& b);
/// a - b.
Tensor sub(const Tensor& a, const Tensor& b);
/// a * b.
Tensor mul(const Tensor& a, const Tensor& b);
/// a / b.
Tensor div(const Tensor& a, const Tensor& b);
/// The larger of a and b.
Tensor maximum(const Tensor& a, const Tensor& b);
/// The smaller of a and b.
Tensor minimum(const Tensor& a, const Tensor& b);
/// The quotient of integers, rounded towards minus infinity; 0 where b is 0.
Tensor floor_div(const Tensor& a, const Tensor& b);
/// a - floor_div(a, b) * b of integers, which has the sign of b; a where b is 0.
Tensor floor_mod(const Tensor& a, const Tensor& b);
// Comparisons, which give i1 tensors, with broadcasting.
/// a == b.
Tensor equal(const Tensor& a, const Tensor& b);
/// a > b.
Tensor greater(const Tensor& a, const Tensor& b);
/// a < b.
Tensor less(const Tensor& a, const Tensor& b);
/// a != b. True where either is NaN.
Tensor not_equal(const Tensor& a, const Tensor& b);
/// a >= b.
Tensor greater_equal(const Tensor& a, const Tensor& b);
/// a <= b.
Tensor less_equal(const Tensor& a, const Tensor& b);
// Logic of i1 tensors, with broadcasting.
/// True where both are.
Tensor logical_and(const Tensor& a, const Tensor& b);
/// True where one of them is, or both.
Tensor logical_or(const Tensor& a, const Tensor& b);
/// True where a is false.
Tensor logical_not(const Tensor& a);
/// a where `condition` (i1) holds, else b; the three broadcast. a and b are floating, or of one other type.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& x);
// Scalars stay f32 constants and never become low.
Tensor operator+(const Tensor& x, double value);
Tensor operator+(double value, const Tensor& x);
Tensor operator-(const Tensor& x, double value);
Tensor operator-(double value, const Tensor& x);
Tensor operator*(const Tensor& x, double value);
Tensor operator*(double value, const Tensor& x);
Tensor operator/(const Tensor& x, double value);

// Matrix work, pooling, normalisation.
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  std::string activation = "none";  ///< none, relu, sigmoid, tanh, gelu (the erf form), gelu_tanh
};
/// The matrix product [M, K] x [K, N]; `bias` is [N], [M, N] or undefined.
Tensor matmul(const Tensor& a, const Tensor& b, const Tensor& bias = {}, const MatmulOptions& options = {});

struct Conv2dOpOptions {
  std::vector<std::int64_t> stride = {1, 1};
  std::string pad_mode = "valid";                    ///< same, valid, pad
  std::vector<std::int64_t> padding = {0, 0, 0, 0};  ///< top, bottom, left, right
  std::vector<std::int64_t> dilation = {1, 1};
  std::int64_t group = 1;
  std::string activation = "none";  ///< as MatmulOptions::activation
};
/// 2-D convolution: x [N, C, H, W], weight [O, C / group, kh, kw]; `bias` is [O] or undefined.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOpOptions& options = {});

struct Pool2dOpOptions {
  std::vector<std::int64_t> kernel_size = {2, 2};
  std::vector<std::int64_t> stride = {};  ///< empty: kernel_size
  std::string pad_mode = "valid";
  std::vector<std::int64_t> padding = {0, 0, 0, 0};
  bool count_include_pad = true;  ///< avg_pool2d only
};
/// The largest element of each window of an image [N, C, H, W].
Tensor max_pool2d(const Tensor& x, const Pool2dOpOptions& options = {});
/// The mean of each window of an image [N, C, H, W].
Tensor avg_pool2d(const Tensor& x, const Pool2dOpOptions& options = {});
/// The mean of each channel of an image: [N, C, H, W] -> [N, C].
Tensor global_avg_pool2d(const Tensor& x);

/// exp(x) / sum(exp(x)) along `axis`.
Tensor softmax(const Tensor& x, std::int64_t axis = -1);
/// The logarithm of softmax(x), of any finite x.
Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
/// Cross-entropy of softmax(logits). Floating labels [N, C] are dense, integer labels [N] sparse; reduction none, mean
/// or sum. The loss is f32.
Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, const std::string& reduction = "mean");
/// (prediction - target)^2 of one shape; reduction none, mean or sum. The loss is f32.
Tensor mse(const Tensor& prediction, const Tensor& target, const std::string& reduction = "mean");
/// Zeroes elements with probability p and scales the rest by 1 / (1 - p) while training. Identity outside training.
Tensor dropout(const Tensor& x, double p);

// Data movement and reductions. Negative axes count from the end. What moves elements takes floating tensors, integers
// and truth values; reductions, sorts and scatter_add take floating ones.
/// The same elements under another shape. One extent may be -1.
Tensor reshape(const Tensor& x, std::vector<std::int64_t> shape);
/// All axes after the first become one.
Tensor flatten(const Tensor& x);
/// Axis i of the result is axis permutation[i] of x.
Tensor transpose(const Tensor& x, std::vector<std::int64_t> permutation);
/// x repeated along axes of extent 1, and along new axes in front, up to `shape`.
Tensor broadcast_to(const Tensor& x, std::vector<std::int64_t> shape);
/// The sum over `axes`, or over all where none are given.
Tensor reduce_sum(const Tensor& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// The mean over `axes`, or over all where none are given.
Tensor reduce_mean(const Tensor& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// The largest element over `axes`. A NaN wins; equal maxima share the derivative evenly.
Tensor reduce_max(const Tensor& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// The smallest element over `axes`. A NaN wins; equal minima share the derivative evenly.
Tensor reduce_min(const Tensor& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// The product over `axes`, or over all where none are given.
Tensor reduce_prod(const Tensor& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
/// Running sums along `axis`: of the elements up to each, or before it where `exclusive`. `reverse` begins at the end.
Tensor cumsum(const Tensor& x, std::int64_t axis, bool exclusive = false, bool reverse = false);
/// The elements along `axis` in order, and their i32 indices. Equal elements keep their order; a NaN is the largest.
std::pair<Tensor, Tensor> sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
/// The k largest elements along `axis`, the largest first, or the k smallest, and their i32 indices; NaN as in sort.
std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool largest = true);
/// The sum of tensors of one shape, of which there is at least one.
Tensor sum_n(const std::vector<Tensor>& tensors);
/// Joins tensors along `axis`; their shapes agree on all other axes. Floating ones of several types become f32.
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis = 0);
/// Splits x into pieces of the given sizes along `axis`; the sizes add up to its extent.
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
/// The block of shape `sizes` that begins at index `starts`; both have one entry for each axis.
Tensor slice(const Tensor& x, const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& sizes);
/// Adds `low` elements of `value` before and `high` elements after each axis; both have one entry for each axis. Among
/// integers the value is one of them, and among truth values 0 or 1.
Tensor pad(const Tensor& x, const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high,
           double value = 0);
/// Rows of `table` [V, ...] by integer `indices` of any shape. An index outside [0, V) gives NaN, or zero where the
/// table is not floating.
Tensor gather(const Tensor& table, const Tensor& indices);
/// x [V, ...] with rows of `updates` added to the rows that integer `indices` name. `updates` has the shape of
/// `indices` followed by the rest of x's. An index outside [0, V) adds nothing.
Tensor scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates);
/// f32 with a new last axis of extent `depth`: `on` at the index, `off` elsewhere.
Tensor one_hot(const Tensor& indices, std::int64_t depth, double on = 1, double off = 0);
/// The i32 indices of the largest elements along `axis`.
Tensor argmax(const Tensor& x, std::int64_t axis = -1);
/// The numbers from `start` on in steps of `step` that lie before `end`: [start, start + step, ...], as f32, i32 or
/// i64. A step may be negative, and there is at least one number.
Tensor arange(std::int64_t start, std::int64_t end, std::int64_t step = 1, DType dtype = DType::kI64);
/// 0, 1, ..., end - 1.
Tensor arange(std::int64_t end);
/// A tensor whose elements are their indices along `axis`, as f32, i32 or i64.
Tensor iota(const Shape& shape, std::int64_t axis = -1, DType dtype = DType::kI32);
/// x, through which no gradient goes.
Tensor stop_gradient(const Tensor& x);
/// Converts x to `dtype`. The rounding of a user's cast is never removed.
Tensor cast(const Tensor& x, DType dtype);

namespace ops {

using mpc::abs, mpc::add, mpc::arange, mpc::argmax, mpc::avg_pool2d, mpc::broadcast_to, mpc::clamp, mpc::concat,
    mpc::conv2d, mpc::cos, mpc::cumsum, mpc::div, mpc::dropout, mpc::equal, mpc::erf, mpc::exp, mpc::flatten,
    mpc::floor, mpc::floor_div, mpc::floor_mod, mpc::gather, mpc::gelu, mpc::global_avg_pool2d, mpc::greater,
    mpc::greater_equal, mpc::hard_swish, mpc::iota, mpc::leaky_relu, mpc::less, mpc::less_equal, mpc::log, mpc::log1p,
    mpc::log_softmax, mpc::logical_and, mpc::logical_not, mpc::logical_or, mpc::matmul, mpc::max_pool2d, mpc::maximum,
    mpc::minimum, mpc::mse, mpc::mul, mpc::neg, mpc::not_equal, mpc::one_hot, mpc::pad, mpc::pow, mpc::prelu,
    mpc::reduce_max, mpc::reduce_mean, mpc::reduce_min, mpc::reduce_prod, mpc::reduce_sum, mpc::relu, mpc::reshape,
    mpc::scatter_add, mpc::sigmoid, mpc::silu, mpc::sin, mpc::slice, mpc::softmax, mpc::softmax_cross_entropy,
    mpc::sort, mpc::split, mpc::sqrt, mpc::square, mpc::stop_gradient, mpc::sub, mpc::sum_n, mpc::tanh, mpc::topk,
    mpc::transpose, mpc::where;

/// As `cast`, with MindSpore's name.
Tensor Cast(const Tensor& x, DType dtype);
/// A tensor whose elements are all `value`. While tracing it is a constant of the graph.
Tensor Fill(DType dtype, const Shape& shape, double value);
/// As Fill, with the type and the shape of `like`.
Tensor FullLike(const Tensor& like, double value);
/// Returns `value`. In MindSpore it orders `value` after `effects` (the results of an optimizer); here state updates
/// belong to the step anyway. It lets steps read as MindSpore's do.
Tensor Depend(const Tensor& value, bool effects);
/// Applies `function` to every tensor.
template <typename Function>
std::vector<Tensor> Map(Function&& function, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> results;
  results.reserve(tensors.size());
  for (const Tensor& tensor : tensors) results.push_back(function(tensor));
  return results;
}

}  // namespace ops
}  // namespace mpc

#include "frontend/graph/resize_ops.h"
#include "frontend/graph/sequence_ops.h"
