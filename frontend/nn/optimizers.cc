#include "frontend/nn/optimizers.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "frontend/graph/ops.h"
#include "frontend/nn/finite_numbers.h"

namespace mpc::nn {
namespace {

/// Attributes of an update by two moments.
template <typename Options>
Attributes MomentAttributes(const Options& options) {
  return {
      {"beta1", options.beta1}, {"beta2", options.beta2}, {"epsilon", options.eps}, {"loss_scale", options.loss_scale}};
}

}  // namespace

SGD::SGD(const ParameterGroups& parameters, const SGDOptions& options)
    : Optimizer(parameters, Common::Of(options), {"velocity"}), options_(options) {
  RejectIf(internal::CheckNotNegative("momentum", options.momentum));
  if (!internal::IsFiniteInF32(options.dampening)) {
    Reject(absl::StrCat("dampening must be a finite number, got ", options.dampening));
  }
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    Reject("nesterov needs momentum > 0 and dampening = 0");
  }
}

std::vector<Tensor> SGD::Update(const Operands& operands) {
  return Emit("sgd", operands, /*with_step=*/true,
              {{"momentum", options_.momentum},
               {"dampening", options_.dampening},
               {"nesterov", options_.nesterov},
               {"loss_scale", options_.loss_scale}});
}

Momentum::Momentum(const ParameterGroups& parameters, const MomentumOptions& options)
    : Optimizer(parameters, Common::Of(options), {"velocity"}), options_(options) {
  RejectIf(internal::CheckNotNegative("momentum", options.momentum));
}

std::vector<Tensor> Momentum::Update(const Operands& operands) {
  return Emit(
      "momentum", operands, /*with_step=*/false,
      {{"momentum", options_.momentum}, {"nesterov", options_.use_nesterov}, {"loss_scale", options_.loss_scale}});
}

Adam::Adam(const ParameterGroups& parameters, const AdamOptions& options)
    : Optimizer(parameters, Common::Of(options), {"moment1", "moment2"}), options_(options) {
  CheckBetas(options.beta1, options.beta2);
  RejectIf(internal::CheckZeroOrPositive("eps", options.eps));
}

std::vector<Tensor> Adam::Update(const Operands& operands) {
  return Emit("adam", operands, /*with_step=*/true, MomentAttributes(options_));
}

AdamWeightDecay::AdamWeightDecay(const ParameterGroups& parameters, const AdamWeightDecayOptions& options)
    : Optimizer(parameters, {options.learning_rate, options.weight_decay, 1.0, options.skip_decay_of_norms},
                {"moment1", "moment2"}),
      options_(options) {
  CheckBetas(options.beta1, options.beta2);
  RejectIf(internal::CheckZeroOrPositive("eps", options.eps));
}

std::vector<Tensor> AdamWeightDecay::Update(const Operands& operands) {
  return Emit("adam_weight_decay", operands, /*with_step=*/false,
              {{"beta1", options_.beta1}, {"beta2", options_.beta2}, {"epsilon", options_.eps}});
}

AdamW::AdamW(const ParameterGroups& parameters, const AdamWOptions& options)
    : Optimizer(parameters, Common::Of(options), {"moment1", "moment2"}), options_(options) {
  CheckBetas(options.beta1, options.beta2);
  RejectIf(internal::CheckZeroOrPositive("eps", options.eps));
}

std::vector<Tensor> AdamW::Update(const Operands& operands) {
  return Emit("adamw", operands, /*with_step=*/true, MomentAttributes(options_));
}

Lamb::Lamb(const ParameterGroups& parameters, const LambOptions& options)
    : Optimizer(parameters, Common::Of(options), {"moment1", "moment2"}), options_(options) {
  CheckBetas(options.beta1, options.beta2);
  RejectIf(internal::CheckZeroOrPositive("eps", options.eps));
}

std::vector<Tensor> Lamb::Update(const Operands& operands) {
  return Emit("lamb", operands, /*with_step=*/true, MomentAttributes(options_));
}

RMSProp::RMSProp(const ParameterGroups& parameters, const RMSPropOptions& options)
    : Optimizer(parameters, Common::Of(options), {{"mean_square", 1.0}, "moment"}), options_(options) {
  if (options.centered) AddSlot("mean_grad");
  RejectIf(internal::CheckShare("decay", options.decay));
  RejectIf(internal::CheckNotNegative("momentum", options.momentum));
  RejectIf(internal::CheckPositive("epsilon", options.epsilon));
}

std::vector<Tensor> RMSProp::Update(const Operands& operands) {
  const Tensor gradient = Decayed(operands);
  const auto average = [&](const Tensor& old, const Tensor& value) {
    return old * options_.decay + value * (1.0 - options_.decay);
  };
  const Tensor mean_square = average(operands.slots[0], square(gradient));
  Tensor spread = mean_square;
  std::vector<Tensor> means{Held(operands, mean_square, operands.slots[0])};
  if (options_.centered) {
    const Tensor mean_gradient = average(operands.slots[2], gradient);
    spread = maximum(mean_square - square(mean_gradient), ops::FullLike(gradient, 0.0));
    means.push_back(Held(operands, mean_gradient, operands.slots[2]));
  }
  // mpc.momentum adds what it is given to the moment and subtracts the moment, which holds the rate already.
  Operands moved = operands;
  moved.slots = {operands.slots[1]};
  moved.gradient = operands.learning_rate * gradient / sqrt(spread + options_.epsilon);
  moved.learning_rate = ops::FullLike(operands.learning_rate, 1.0);
  moved.weight_decay = 0.0;
  const std::vector<Tensor> updated = Emit("momentum", moved, /*with_step=*/false, {{"momentum", options_.momentum}});
  std::vector<Tensor> results{updated[0], means[0], updated[1]};
  if (options_.centered) results.push_back(means[1]);
  return results;
}

Lion::Lion(const ParameterGroups& parameters, const LionOptions& options)
    : Optimizer(parameters, Common::Of(options), {"moment"}), options_(options) {
  CheckBetas(options.beta1, options.beta2);
}

std::vector<Tensor> Lion::Update(const Operands& operands) {
  const Tensor gradient = Unscaled(operands);
  const Tensor& moment = operands.slots[0];
  const auto mix = [&](double beta) { return moment * beta + gradient * (1.0 - beta); };
  const Tensor mixed = mix(options_.beta1);
  const Tensor zero = ops::FullLike(mixed, 0.0);
  const Tensor sign = where(greater(mixed, zero), ops::FullLike(mixed, 1.0),
                            where(less(mixed, zero), ops::FullLike(mixed, -1.0), zero));
  return {Descend(operands, sign, operands.weight_decay), Held(operands, mix(options_.beta2), moment)};
}

Adagrad::Adagrad(const ParameterGroups& parameters, const AdagradOptions& options)
    : Optimizer(parameters, Common::Of(options), {{"accum", options.accum}}), options_(options) {
  RejectIf(internal::CheckNotNegative("accum", options.accum));
}

std::vector<Tensor> Adagrad::Update(const Operands& operands) {
  const Tensor gradient = Decayed(operands);
  const Tensor& old = operands.slots[0];
  const Tensor sum = options_.update_slots ? old + square(gradient) : old;
  // The smallest normal number keeps 0 / 0 away.
  const Tensor root = sqrt(maximum(sum, ops::FullLike(sum, std::numeric_limits<float>::min())));
  const Tensor updated = Descend(operands, gradient / root, /*weight_decay=*/0.0);
  return {updated, options_.update_slots ? Held(operands, sum, old) : old};
}

}  // namespace mpc::nn
