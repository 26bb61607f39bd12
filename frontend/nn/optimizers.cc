#include "frontend/nn/optimizers.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace mpc::nn {
namespace {

bool FiniteAndNotNegative(double value) { return std::isfinite(value) && value >= 0; }

std::string NotFiniteOrNegative(const char* name, double value) {
  return absl::StrCat(name, " must be a finite number >= 0, got ", value);
}

}  // namespace

SGD::SGD(const ParameterGroups& parameters, const SGDOptions& options)
    : Optimizer(parameters,
                {options.learning_rate, options.weight_decay, options.loss_scale, options.skip_decay_of_norms},
                {"velocity"}),
      options_(options) {
  if (!FiniteAndNotNegative(options.momentum)) Reject(NotFiniteOrNegative("momentum", options.momentum));
  if (!std::isfinite(options.dampening)) {
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
    : Optimizer(parameters,
                {options.learning_rate, options.weight_decay, options.loss_scale, options.skip_decay_of_norms},
                {"velocity"}),
      options_(options) {
  if (!FiniteAndNotNegative(options.momentum)) Reject(NotFiniteOrNegative("momentum", options.momentum));
}

std::vector<Tensor> Momentum::Update(const Operands& operands) {
  return Emit(
      "momentum", operands, /*with_step=*/false,
      {{"momentum", options_.momentum}, {"nesterov", options_.use_nesterov}, {"loss_scale", options_.loss_scale}});
}

Adam::Adam(const ParameterGroups& parameters, const AdamOptions& options)
    : Optimizer(parameters,
                {options.learning_rate, options.weight_decay, options.loss_scale, options.skip_decay_of_norms},
                {"moment1", "moment2"}),
      options_(options) {
  CheckBetas(options.beta1, options.beta2);
  if (!FiniteAndNotNegative(options.eps)) Reject(NotFiniteOrNegative("eps", options.eps));
}

std::vector<Tensor> Adam::Update(const Operands& operands) {
  return Emit("adam", operands, /*with_step=*/true,
              {{"beta1", options_.beta1},
               {"beta2", options_.beta2},
               {"epsilon", options_.eps},
               {"loss_scale", options_.loss_scale}});
}

AdamWeightDecay::AdamWeightDecay(const ParameterGroups& parameters, const AdamWeightDecayOptions& options)
    : Optimizer(parameters, {options.learning_rate, options.weight_decay, 1.0, options.skip_decay_of_norms},
                {"moment1", "moment2"}),
      options_(options) {
  CheckBetas(options.beta1, options.beta2);
  if (!FiniteAndNotNegative(options.eps)) Reject(NotFiniteOrNegative("eps", options.eps));
}

std::vector<Tensor> AdamWeightDecay::Update(const Operands& operands) {
  return Emit("adam_weight_decay", operands, /*with_step=*/false,
              {{"beta1", options_.beta1}, {"beta2", options_.beta2}, {"epsilon", options_.eps}});
}

AdamW::AdamW(const ParameterGroups& parameters, const AdamWOptions& options)
    : Optimizer(parameters,
                {options.learning_rate, options.weight_decay, options.loss_scale, options.skip_decay_of_norms},
                {"moment1", "moment2"}),
      options_(options) {
  CheckBetas(options.beta1, options.beta2);
  if (!FiniteAndNotNegative(options.eps)) Reject(NotFiniteOrNegative("eps", options.eps));
}

std::vector<Tensor> AdamW::Update(const Operands& operands) {
  return Emit("adamw", operands, /*with_step=*/true,
              {{"beta1", options_.beta1},
               {"beta2", options_.beta2},
               {"epsilon", options_.eps},
               {"loss_scale", options_.loss_scale}});
}

Lamb::Lamb(const ParameterGroups& parameters, const LambOptions& options)
    : Optimizer(parameters,
                {options.learning_rate, options.weight_decay, options.loss_scale, options.skip_decay_of_norms},
                {"moment1", "moment2"}),
      options_(options) {
  CheckBetas(options.beta1, options.beta2);
  if (!FiniteAndNotNegative(options.eps)) Reject(NotFiniteOrNegative("eps", options.eps));
}

std::vector<Tensor> Lamb::Update(const Operands& operands) {
  return Emit("lamb", operands, /*with_step=*/true,
              {{"beta1", options_.beta1},
               {"beta2", options_.beta2},
               {"epsilon", options_.eps},
               {"loss_scale", options_.loss_scale}});
}

}  // namespace mpc::nn
