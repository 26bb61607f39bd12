#include "frontend/graph/gradient_ops.h"

#include "absl/strings/str_cat.h"
#include "frontend/graph/amp_session.h"
#include "frontend/graph/tensor_node.h"
#include "frontend/graph/trace.h"

namespace mpc::ops {
namespace {

using mpc::internal::GradientTracer;
using mpc::internal::Trace;

std::vector<Parameter> Trained(const std::vector<Parameter>& parameters) {
  std::vector<Parameter> trained;
  for (const Parameter& parameter : parameters) {
    if (parameter.requires_grad()) trained.push_back(parameter);
  }
  return trained;
}

/// One gradient a parameter: zeros for those that are frozen.
std::vector<Tensor> WithFrozen(Trace& trace, const std::vector<Parameter>& parameters,
                               const std::vector<Tensor>& of_trained) {
  std::vector<Tensor> gradients;
  auto gradient = of_trained.begin();
  for (const Parameter& parameter : parameters) {
    gradients.push_back(parameter.requires_grad() ? *gradient++
                                                  : trace.Splat({parameter.dtype(), parameter.shape()}, 0.0));
  }
  return gradients;
}

Tensor NoTrace(const char* what) {
  return mpc::internal::MakeInvalid(absl::FailedPreconditionError(
      absl::StrCat(what, " belongs into a training step's Construct; no trace is running")));
}

}  // namespace

ValueAndGradResult ValueAndGrad(const nn::CellFunction& network, const std::vector<Parameter>& parameters,
                                const std::vector<Tensor>& inputs, const Tensor& seed, std::int64_t loss_id) {
  Trace* trace = Trace::Current();
  if (trace == nullptr) {
    const Tensor error = NoTrace("ValueAndGrad");
    return {error, {}, std::vector<Tensor>(parameters.size(), error)};
  }
  GradientTracer::Gradients result = trace->gradients().ValueAndGrad(
      network.cell(), [&](const std::vector<Tensor>& arguments) { return network.Flat(arguments); }, inputs,
      Trained(parameters), seed, loss_id);
  ValueAndGradResult value_and_grad;
  value_and_grad.value = result.outputs.front();
  value_and_grad.aux.assign(result.outputs.begin() + 1, result.outputs.end());
  value_and_grad.gradients = WithFrozen(*trace, parameters, result.gradients);
  return value_and_grad;
}

std::vector<Tensor> Backward(const Tensor& loss, const std::vector<Parameter>& parameters, const Tensor& seed,
                             std::int64_t loss_id) {
  Trace* trace = Trace::Current();
  if (trace == nullptr) return std::vector<Tensor>(parameters.size(), NoTrace("Backward"));
  return amp::internal::AfterBackward(
      *trace, loss, parameters,
      WithFrozen(*trace, parameters, trace->gradients().Backward(loss, Trained(parameters), seed, loss_id)));
}

std::vector<Tensor> Grad(const Tensor& loss, const std::vector<Tensor>& tensors, const Tensor& seed) {
  Trace* trace = Trace::Current();
  if (trace != nullptr) return trace->gradients().Grad(loss, tensors, seed);
  return std::vector<Tensor>(tensors.size(), mpc::internal::MakeInvalid(absl::FailedPreconditionError(
                                                 "Grad belongs into a Cell's Construct; no trace is running")));
}

std::vector<Tensor> CustomVjp(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& forward,
                              const VjpRule& vjp, const std::vector<Tensor>& inputs) {
  Trace* trace = Trace::Current();
  if (trace == nullptr) return forward(inputs);
  const auto rule = [&vjp, count = inputs.size()](const std::vector<Tensor>& arguments) {
    const auto outputs = arguments.begin() + static_cast<std::ptrdiff_t>(count);
    const auto cotangents = outputs + (arguments.end() - outputs) / 2;
    return vjp({arguments.begin(), outputs}, {outputs, cotangents}, {cotangents, arguments.end()});
  };
  return trace->gradients().CustomVjp(forward, rule, inputs);
}

}  // namespace mpc::ops
