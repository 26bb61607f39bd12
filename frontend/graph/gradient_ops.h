// Derivatives inside a training step: of a network, of a value, by a rule of the user's own.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "frontend/graph/cell.h"
#include "frontend/graph/parameter.h"
#include "frontend/graph/tensor.h"

namespace mpc::ops {

struct ValueAndGradResult {
  Tensor value;                   ///< the loss
  std::vector<Tensor> aux;        ///< the network's other outputs
  std::vector<Tensor> gradients;  ///< one a parameter
};
/// Computes the loss of `network` on `inputs` and its gradients with respect to `parameters`, inside a training step.
/// `seed` is the cotangent of the loss: f32, a scalar or of the loss's shape; undefined means 1. Frozen parameters get
/// zeros. `loss_id` chooses among several loss scalers; -1: the place of this request among those of the step. A plain
/// call `network(inputs)` earlier in the step shares this forward pass where it computes the same. Its inputs are the
/// same tensors. The state that it used, such as the Parameters that it read, has not been assigned since. The Cells
/// below `network` have the same training modes and ToFloat. The same amp::AutoCast and ToFloat are around both. Its
/// outputs are then those of this pass: dropout draws once, running statistics move once. Otherwise the two passes are
/// computed apart. They also are where `seed` or what `network` reads is computed from that call.
ValueAndGradResult ValueAndGrad(const nn::CellFunction& network, const std::vector<Parameter>& parameters,
                                const std::vector<Tensor>& inputs, const Tensor& seed = {}, std::int64_t loss_id = -1);

/// The gradients of `loss`, a floating value that this step computed, with respect to `parameters`. What several losses
/// have in common is computed once. If a parameter was updated since, its gradient is taken at the value that the loss
/// read. Frozen parameters, and those that the loss does not use (with a remark), get zeros. `seed` and `loss_id` are
/// those of ValueAndGrad. With `accumulation_steps` they add up over the micro-batches of an update: in the last one,
/// where optimizers act, they are the mean over all. Errors: no trace is running; a loss that is not floating.
///
/// In earlier micro-batches they are parts of that sum. A loss that is made of such sums has no gradients. Grad by the
/// parameters' tensors gives those of the micro-batch, of which a loss may be made.
std::vector<Tensor> Backward(const Tensor& loss, const std::vector<Parameter>& parameters, const Tensor& seed = {},
                             std::int64_t loss_id = -1);

/// The gradients of `loss`, a floating value, with respect to `tensors` that it was computed from: inputs, or values in
/// between. They are of the tensors' types and shapes. PyTorch's torch.autograd.grad with create_graph=True,
/// MindSpore's mindspore.grad by inputs. A tensor that the loss does not depend on gets zeros, with a remark. `seed` is
/// the cotangent of the loss: f32, a scalar or of the loss's shape; undefined means 1.
///
/// Any Cell may ask for them, also one that only predicts. A loss may be made of them: its gradients are second
/// derivatives. What computes one of `tensors` is f32 at every AMP level. No loss scale multiplies the gradients: where
/// they are small in f16, a larger `seed` keeps them, as in Grad(loss, {x}, seed)[0] / seed. With `accumulation_steps`
/// and several processes they are those of the micro-batch. Errors: no trace is running; a loss or a tensor that is not
/// floating; a constant.
std::vector<Tensor> Grad(const Tensor& loss, const std::vector<Tensor>& tensors, const Tensor& seed = {});

/// Computes one cotangent for each floating input, of that input's type, from the inputs, the outputs and one cotangent
/// for each output.
using VjpRule = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                                  const std::vector<Tensor>& cotangents)>;

/// Computes `forward(inputs)`, whose derivative is `vjp`: nothing of `forward` is differentiated. Both functions see
/// their arguments only: a Parameter or an outer tensor must be one of `inputs`, and neither may update state. On
/// concrete tensors this is `forward(inputs)`. Errors: a function captures a value that is not among its arguments;
/// cotangents do not fit the inputs.
std::vector<Tensor> CustomVjp(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& forward,
                              const VjpRule& vjp, const std::vector<Tensor>& inputs);

}  // namespace mpc::ops
