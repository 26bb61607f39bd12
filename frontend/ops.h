// Operations on tensors: functions found by argument-dependent lookup, operators, and namespace `ops`.
//
// Inside `Construct` they record into the graph; on concrete tensors they compile and run at once. Errors are kept in
// the trace (with the Cell path) or in the returned tensor (`status()`). Formulas, shapes and types: docs/dialect.md.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/cell.h"
#include "frontend/tensor.h"

namespace mpc {

// Element-wise.
Tensor relu(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor neg(const Tensor& x);
/// x * x.
Tensor square(const Tensor& x);
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);
/// i1 tensor, with broadcasting.
Tensor equal(const Tensor& a, const Tensor& b);

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
  std::string activation = "none";  ///< none, relu, sigmoid, tanh
};
/// [M, K] x [K, N]; `bias` is [N] or undefined.
Tensor matmul(const Tensor& a, const Tensor& b, const Tensor& bias = {}, const MatmulOptions& options = {});

struct Conv2dOpOptions {
  std::vector<std::int64_t> stride = {1, 1};
  std::string pad_mode = "valid";                    ///< same, valid, pad
  std::vector<std::int64_t> padding = {0, 0, 0, 0};  ///< top, bottom, left, right
  std::vector<std::int64_t> dilation = {1, 1};
  std::int64_t group = 1;
  std::string activation = "none";
};
/// x [N, C, H, W], weight [O, C / group, kh, kw]; `bias` is [O] or undefined.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOpOptions& options = {});

struct Pool2dOpOptions {
  std::vector<std::int64_t> kernel_size = {2, 2};
  std::vector<std::int64_t> stride = {};  ///< empty: kernel_size
  std::string pad_mode = "valid";
  std::vector<std::int64_t> padding = {0, 0, 0, 0};
  bool count_include_pad = true;  ///< avg_pool2d only
};
Tensor max_pool2d(const Tensor& x, const Pool2dOpOptions& options = {});
Tensor avg_pool2d(const Tensor& x, const Pool2dOpOptions& options = {});

Tensor softmax(const Tensor& x, std::int64_t axis = -1);
Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
/// Floating labels [N, C] are dense, integer labels [N] sparse; reduction none, mean or sum. The loss is f32.
Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, const std::string& reduction = "mean");
Tensor mse(const Tensor& prediction, const Tensor& target, const std::string& reduction = "mean");
/// Identity outside training.
Tensor dropout(const Tensor& x, double p);

// Data movement and reductions. Negative axes count from the end.
/// One extent may be -1.
Tensor reshape(const Tensor& x, std::vector<std::int64_t> shape);
/// All axes after the first become one.
Tensor flatten(const Tensor& x);
Tensor transpose(const Tensor& x, std::vector<std::int64_t> permutation);
Tensor broadcast_to(const Tensor& x, std::vector<std::int64_t> shape);
Tensor reduce_sum(const Tensor& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Tensor reduce_mean(const Tensor& x, std::vector<std::int64_t> axes = {}, bool keep_dims = false);
Tensor sum_n(const std::vector<Tensor>& tensors);
/// i32 indices.
Tensor argmax(const Tensor& x, std::int64_t axis = -1);
Tensor stop_gradient(const Tensor& x);
/// A user's cast: its rounding is never removed.
Tensor cast(const Tensor& x, DType dtype);

namespace ops {

using mpc::add, mpc::argmax, mpc::avg_pool2d, mpc::broadcast_to, mpc::conv2d, mpc::div, mpc::dropout, mpc::equal,
    mpc::exp, mpc::flatten, mpc::log, mpc::log_softmax, mpc::matmul, mpc::max_pool2d, mpc::maximum, mpc::mse, mpc::mul,
    mpc::neg, mpc::reduce_mean, mpc::reduce_sum, mpc::relu, mpc::reshape, mpc::sigmoid, mpc::softmax,
    mpc::softmax_cross_entropy, mpc::sqrt, mpc::square, mpc::stop_gradient, mpc::sub, mpc::sum_n, mpc::tanh,
    mpc::transpose;

/// As `cast`, with MindSpore's name.
Tensor Cast(const Tensor& x, DType dtype);
/// A tensor of one value. While tracing a constant of the graph.
Tensor Fill(DType dtype, const Shape& shape, double value);
Tensor FullLike(const Tensor& like, double value);
/// `value`, once `effects` (the results of an optimizer) have happened: state updates belong to the step anyway, so
/// this returns `value`. It lets steps read as MindSpore's do.
Tensor Depend(const Tensor& value, bool effects);
/// Applies `function` to every tensor.
template <typename Function>
std::vector<Tensor> Map(Function&& function, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> results;
  results.reserve(tensors.size());
  for (const Tensor& tensor : tensors) results.push_back(function(tensor));
  return results;
}

struct ValueAndGradResult {
  Tensor value;                   ///< the loss
  std::vector<Tensor> aux;        ///< the network's other outputs
  std::vector<Tensor> gradients;  ///< one a parameter
};
/// The loss of `network` on `inputs` and its gradients by `parameters`, inside a training step. `seed` is the cotangent
/// of the loss, f32, of the loss's shape or scalar; undefined means 1. Frozen parameters get zeros. A plain call of the
/// same network on the same inputs earlier in the step is the same forward pass.
ValueAndGradResult ValueAndGrad(const nn::CellFunction& network, const std::vector<Parameter>& parameters,
                                const std::vector<Tensor>& inputs, const Tensor& seed = {});

}  // namespace ops
}  // namespace mpc
