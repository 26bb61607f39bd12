#include "frontend/amp/scaled_backward.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "frontend/graph/amp_session.h"
#include "frontend/nn/optimizer.h"

namespace mpc::amp::internal {
namespace {

bool Contains(const std::vector<const nn::Optimizer*>& optimizers, const nn::Optimizer* wanted) {
  return std::find(optimizers.begin(), optimizers.end(), wanted) != optimizers.end();
}

bool ShareAnOptimizer(const LossUse& a, const LossUse& b) {
  return std::any_of(a.optimizers.begin(), a.optimizers.end(),
                     [&](const nn::Optimizer* optimizer) { return Contains(b.optimizers, optimizer); });
}

/// The losses and gradients that one scaler checks together.
struct CheckedGradients {
  StepScaler* scaler;
  std::vector<Tensor> losses;
  std::vector<Tensor> gradients;
  std::vector<std::string> names;

  void Add(const LossUse& use, const Tensor& gradient, const Parameter& parameter) {
    const bool known =
        std::any_of(losses.begin(), losses.end(), [&](const Tensor& l) { return SameValue(l, use.loss); });
    if (!known) losses.push_back(use.loss);
    gradients.push_back(gradient);
    names.push_back(parameter.name());
  }
};

}  // namespace

LossUse* ScaledBackward::Find(const Tensor& scaled) {
  for (const auto& use : uses_) {
    if (SameValue(use->scaled, scaled)) return use.get();
  }
  return nullptr;
}

void ScaledBackward::Delay(const LossUse& use, const std::vector<Parameter>& parameters,
                           const std::vector<Tensor>& gradients) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].requires_grad()) delayed_.push_back({parameters[i], gradients[i], &use});
  }
}

std::vector<Tensor> ScaledBackward::Unscale(Trace& trace, LossUse& use, const std::vector<Parameter>& parameters,
                                            std::vector<Tensor> gradients) {
  std::vector<CheckedGradients> checks;
  const auto check_of = [&](StepScaler* scaler) -> CheckedGradients& {
    for (CheckedGradients& check : checks) {
      if (check.scaler == scaler) return check;
    }
    checks.push_back({scaler, {}, {}, {}});
    return checks.back();
  };
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].requires_grad()) continue;
    check_of(use.scaler).Add(use, gradients[i], parameters[i]);
    gradients[i] = use.scaler->Unscale(gradients[i]);
    for (auto delayed = delayed_.begin(); delayed != delayed_.end();) {
      if (!(delayed->parameter == parameters[i]) || !ShareAnOptimizer(*delayed->use, use)) {
        ++delayed;
        continue;
      }
      check_of(delayed->use->scaler).Add(*delayed->use, delayed->gradient, delayed->parameter);
      gradients[i] = trace.Emit("add", {gradients[i], delayed->use->scaler->Unscale(delayed->gradient)}, {})[0];
      delayed = delayed_.erase(delayed);
    }
  }
  std::vector<Tensor> flags;
  for (CheckedGradients& check : checks) {
    flags.push_back(check.scaler->Check(check.gradients, check.losses, std::move(check.names)));
    check.scaler->UpdateAtEnd();
  }
  if (!trace.failed()) use.finite = AllOf(trace, flags);
  return gradients;
}

bool ScaledBackward::IsDelayed(const nn::Optimizer& optimizer) const {
  return std::any_of(delayed_.begin(), delayed_.end(),
                     [&](const DelayedGradient& delayed) { return Contains(delayed.use->optimizers, &optimizer); });
}

std::vector<Tensor> ScaledBackward::Flags(const nn::Optimizer& optimizer) const {
  std::vector<Tensor> flags;
  for (const auto& use : uses_) {
    const bool counts = Contains(use->optimizers, &optimizer) && use->scaler->scaler()->config().skip;
    if (counts && use->finite.defined()) flags.push_back(use->finite);
  }
  return flags;
}

Tensor UpdatePredicate(Trace& trace, const nn::Optimizer& optimizer) {
  if (optimizer.amp_session() == nullptr || trace.failed()) return {};
  const auto& backward = trace.locals().Get<ScaledBackward>();
  if (backward.IsDelayed(optimizer)) {
    trace.Fail(absl::StrCat(optimizer.TypeName(),
                            " is called while amp::ScaleLoss delays the unscaling of its gradients: a later backward ",
                            "pass for it must not delay"));
    return {};
  }
  return AllOf(trace, backward.Flags(optimizer));
}

std::vector<Tensor> AfterBackward(Trace& trace, const Tensor& loss, const std::vector<Parameter>& parameters,
                                  std::vector<Tensor> gradients) {
  if (trace.failed() || !trace.in_step()) return gradients;
  StepScaling::InTrace(trace).Note({loss, parameters, gradients});
  auto& backward = trace.locals().Get<ScaledBackward>();
  LossUse* use = backward.Find(loss);
  if (use == nullptr) return gradients;
  if (!use->delay) return backward.Unscale(trace, *use, parameters, std::move(gradients));
  backward.Delay(*use, parameters, gradients);
  return gradients;
}

}  // namespace mpc::amp::internal
