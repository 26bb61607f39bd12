#include "frontend/nn/optimizer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "frontend/trace.h"

namespace mpc::nn {
namespace {

std::vector<Tensor> Emit(std::string_view op, const Tensor& parameter, const std::vector<Tensor>& slots,
                         std::vector<Tensor> rest, const Attributes& attributes) {
  std::vector<Tensor> operands{parameter};
  operands.insert(operands.end(), slots.begin(), slots.end());
  operands.insert(operands.end(), rest.begin(), rest.end());
  return mpc::internal::Trace::Current()->Emit(op, operands, attributes);
}

std::string NameOf(const Parameter& parameter) {
  return parameter.name().empty() ? absl::StrCat("<unnamed ", ShapeToString(parameter.shape()), ">") : parameter.name();
}

}  // namespace

Optimizer::Optimizer(std::vector<Parameter> parameters, double learning_rate, double loss_scale,
                     std::vector<std::string> slot_names)
    : parameters_(std::move(parameters)),
      learning_rate_(Tensor::Scalar(static_cast<float>(learning_rate)),
                     {.requires_grad = false, .role = "learning_rate"}),
      step_(Tensor::Scalar<std::int32_t>(0), {.requires_grad = false, .role = "step"}),
      slot_names_(std::move(slot_names)),
      loss_scale_(loss_scale) {
  if (parameters_.empty()) Reject("got no parameters; pass net.TrainableParams()");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].defined()) {
      Reject(absl::StrCat("parameter ", i, " is undefined"));
      return;
    }
    if (std::find(parameters_.begin(), parameters_.begin() + static_cast<std::ptrdiff_t>(i), parameters_[i]) !=
        parameters_.begin() + static_cast<std::ptrdiff_t>(i)) {
      Reject(absl::StrCat("parameter '", NameOf(parameters_[i]), "' is given twice"));
    }
    std::vector<Parameter> slots;
    for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) {
      slots.emplace_back(parameters_[i].shape(), Zeros(), ParameterOptions{.requires_grad = false, .role = "slot"});
    }
    slots_.push_back(std::move(slots));
  }
  if (!(learning_rate >= 0) || std::isinf(learning_rate)) {
    Reject(absl::StrCat("learning_rate must be a finite number >= 0, got ", learning_rate));
  }
  if (!(loss_scale > 0) || std::isinf(loss_scale)) {
    Reject(absl::StrCat("loss_scale must be a finite number > 0, got ", loss_scale));
  }
}

void Optimizer::Reject(const std::string& message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat("optimizer: ", message));
}

absl::Status Optimizer::SetLearningRate(double learning_rate) {
  if (!(learning_rate >= 0) || std::isinf(learning_rate)) {
    return absl::InvalidArgumentError(absl::StrCat("learning_rate must be a finite number >= 0, got ", learning_rate));
  }
  return learning_rate_.SetData(Tensor::Scalar(static_cast<float>(learning_rate)));
}

absl::StatusOr<double> Optimizer::learning_rate() const {
  absl::StatusOr<Tensor> value = learning_rate_.Value();
  return value.ok() ? value->TryItem<double>() : value.status();
}

absl::StatusOr<std::int64_t> Optimizer::step() const {
  absl::StatusOr<Tensor> value = step_.Value();
  return value.ok() ? value->TryItem<std::int64_t>() : value.status();
}

std::vector<Parameter> Optimizer::State() {
  learning_rate_.set_name(absl::StrCat(prefix_, ".learning_rate"));
  step_.set_name(absl::StrCat(prefix_, ".step"));
  std::vector<Parameter> state{learning_rate_, step_};
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    for (std::size_t slot = 0; slot < slot_names_.size(); ++slot) {
      slots_[i][slot].set_name(absl::StrCat(prefix_, ".", parameters_[i].name(), ".", slot_names_[slot]));
      state.push_back(slots_[i][slot]);
    }
  }
  return state;
}

bool Optimizer::operator()(const std::vector<Tensor>& gradients) {
  auto* trace = mpc::internal::Trace::Current();
  if (trace == nullptr) return false;
  if (!status_.ok()) trace->Fail(std::string(status_.message()));
  if (gradients.size() != parameters_.size()) {
    trace->Fail(
        absl::StrCat("optimizer: got ", gradients.size(), " gradients for ", parameters_.size(), " parameters"));
  }
  if (trace->failed()) return false;
  prefix_ = trace->OptimizerPrefix(step_);
  State();
  const Tensor learning_rate = learning_rate_.Read();
  const Tensor step = step_.Read();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    // Frozen parameters keep their slots and stay as they are.
    if (!parameters_[i].requires_grad()) continue;
    // Nor does weight decay touch what the loss does not use; the autodiff pass remarks on it.
    if (trace->IsUnused(parameters_[i])) continue;
    if (!trace->ClaimUpdate(parameters_[i])) {
      trace->Fail(absl::StrCat("parameter '", NameOf(parameters_[i]), "' is updated by two optimizers"));
      return false;
    }
    std::vector<Tensor> slots;
    for (const Parameter& slot : slots_[i]) slots.push_back(slot.Read());
    const std::vector<Tensor> updated = Update(parameters_[i].Read(), slots, gradients[i], learning_rate, step);
    if (trace->failed()) return false;
    trace->Assign(parameters_[i], updated[0]);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) trace->Assign(slots_[i][slot], updated[slot + 1]);
  }
  trace->Assign(step_, trace->Emit("increment", {step}, {})[0]);
  return true;
}

SGD::SGD(std::vector<Parameter> parameters, const SGDOptions& options)
    : Optimizer(std::move(parameters), options.learning_rate, options.loss_scale, {"velocity"}), options_(options) {
  if (options.momentum < 0) Reject(absl::StrCat("momentum must be >= 0, got ", options.momentum));
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0)) {
    Reject("nesterov needs momentum > 0 and dampening = 0");
  }
}

std::vector<Tensor> SGD::Update(const Tensor& parameter, const std::vector<Tensor>& slots, const Tensor& gradient,
                                const Tensor& learning_rate, const Tensor& step) {
  return Emit("sgd", parameter, slots, {gradient, learning_rate, step},
              {{"momentum", options_.momentum},
               {"dampening", options_.dampening},
               {"nesterov", options_.nesterov},
               {"weight_decay", options_.weight_decay},
               {"loss_scale", options_.loss_scale}});
}

Momentum::Momentum(std::vector<Parameter> parameters, const MomentumOptions& options)
    : Optimizer(std::move(parameters), options.learning_rate, options.loss_scale, {"velocity"}), options_(options) {
  if (options.momentum < 0) Reject(absl::StrCat("momentum must be >= 0, got ", options.momentum));
}

std::vector<Tensor> Momentum::Update(const Tensor& parameter, const std::vector<Tensor>& slots, const Tensor& gradient,
                                     const Tensor& learning_rate, const Tensor&) {
  return Emit("momentum", parameter, slots, {gradient, learning_rate},
              {{"momentum", options_.momentum},
               {"nesterov", options_.use_nesterov},
               {"weight_decay", options_.weight_decay},
               {"loss_scale", options_.loss_scale}});
}

Adam::Adam(std::vector<Parameter> parameters, const AdamOptions& options)
    : Optimizer(std::move(parameters), options.learning_rate, options.loss_scale, {"moment1", "moment2"}),
      options_(options) {
  if (!(options.beta1 >= 0 && options.beta1 < 1) || !(options.beta2 >= 0 && options.beta2 < 1)) {
    Reject(absl::StrCat("beta1 and beta2 must be in [0, 1), got ", options.beta1, " and ", options.beta2));
  }
}

std::vector<Tensor> Adam::Update(const Tensor& parameter, const std::vector<Tensor>& slots, const Tensor& gradient,
                                 const Tensor& learning_rate, const Tensor& step) {
  return Emit("adam", parameter, slots, {gradient, learning_rate, step},
              {{"beta1", options_.beta1},
               {"beta2", options_.beta2},
               {"epsilon", options_.eps},
               {"weight_decay", options_.weight_decay},
               {"loss_scale", options_.loss_scale}});
}

AdamWeightDecay::AdamWeightDecay(std::vector<Parameter> parameters, const AdamWeightDecayOptions& options)
    : Optimizer(std::move(parameters), options.learning_rate, 1.0, {"moment1", "moment2"}), options_(options) {
  if (!(options.beta1 >= 0 && options.beta1 < 1) || !(options.beta2 >= 0 && options.beta2 < 1)) {
    Reject(absl::StrCat("beta1 and beta2 must be in [0, 1), got ", options.beta1, " and ", options.beta2));
  }
}

std::vector<Tensor> AdamWeightDecay::Update(const Tensor& parameter, const std::vector<Tensor>& slots,
                                            const Tensor& gradient, const Tensor& learning_rate, const Tensor&) {
  return Emit("adam_weight_decay", parameter, slots, {gradient, learning_rate},
              {{"beta1", options_.beta1},
               {"beta2", options_.beta2},
               {"epsilon", options_.eps},
               {"weight_decay", options_.weight_decay}});
}

}  // namespace mpc::nn
