#include "frontend/nn/optimizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/graph/amp_session.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/step_scaler.h"
#include "frontend/graph/trace.h"
#include "frontend/nn/finite_numbers.h"

namespace mpc::nn {
namespace {

std::string NameOf(const Parameter& parameter) {
  return parameter.name().empty() ? absl::StrCat("<unnamed ", ShapeToString(parameter.shape()), ">") : parameter.name();
}

/// The scale of these gradients, in words, where dividing by `loss_scale` does not undo it. Empty where it does, or
/// where the scale is not known. The wrap has scaled them, or a scaler that the step calls. A scale that moves fits no
/// number.
std::string WrongScale(mpc::internal::Trace& trace, const std::vector<Tensor>& gradients, double loss_scale) {
  if (loss_scale == 1.0) return "";
  const std::optional<double>& of_wrap = trace.updates().divided_scale();
  if (of_wrap.has_value() && *of_wrap != loss_scale) return absl::StrCat(*of_wrap);
  if (!trace.in_step()) return "";
  const auto& scaling = amp::internal::StepScaling::InTrace(trace);
  for (const Tensor& gradient : gradients) {
    const amp::internal::StepScaler* scaler = gradient.defined() ? scaling.ScalerBehind(gradient) : nullptr;
    if (scaler == nullptr) continue;
    if (scaler->scaler()->current().mode == LossScaleConfig::Mode::kDynamic) return "dynamic";
    if (const double scale = scaler->scaler()->scale(); scale != loss_scale) return absl::StrCat(scale);
  }
  return "";
}

Parameter MakeCounter() {
  return Parameter(Tensor::Scalar<std::int32_t>(0), {.requires_grad = false, .role = Role::kStep});
}

}  // namespace

Optimizer::Optimizer(const ParameterGroups& groups, const Common& common, std::vector<Slot> slots)
    : step_(MakeCounter()),
      slot_kinds_(std::move(slots)),
      loss_scale_(common.loss_scale),
      skip_decay_of_norms_(common.skip_decay_of_norms && !groups.grouped()) {
  for (const ParameterGroup& group : groups.groups()) {
    const LearningRate& rate = group.learning_rate.has_value() ? *group.learning_rate : common.learning_rate;
    if (!rate.status().ok()) Reject(std::string(rate.status().message()));
    const double decay = group.weight_decay.value_or(common.weight_decay);
    RejectIf(internal::CheckNotNegative("weight_decay", decay));
    groups_.push_back({rate,
                       Parameter(Tensor::Scalar(static_cast<float>(rate.value())),
                                 {.requires_grad = false, .role = Role::kLearningRate}),
                       decay});
    for (const Parameter& parameter : group.params) AddParameter(parameter, groups_.size() - 1, groups.grouped());
    if (groups.grouped() && group.params.empty()) {
      Reject(absl::StrCat("parameter group ", groups_.size() - 1, " is empty"));
    }
  }
  if (parameters_.empty()) Reject("got no parameters; pass net.TrainableParams()");
  RejectIf(internal::CheckPositive("loss_scale", loss_scale_));
}

void Optimizer::AddParameter(const Parameter& parameter, std::size_t group, bool grouped) {
  if (!parameter.defined()) {
    Reject(absl::StrCat("parameter ", parameters_.size(), " is undefined"));
    return;
  }
  const auto earlier = std::find(parameters_.begin(), parameters_.end(), parameter);
  if (earlier != parameters_.end()) {
    const std::size_t first = group_of_[static_cast<std::size_t>(earlier - parameters_.begin())];
    const std::string where = first != group ? absl::StrCat(", in parameter groups ", first, " and ", group)
                              : grouped      ? absl::StrCat(", in parameter group ", group)
                                             : "";
    Reject(absl::StrCat("parameter '", NameOf(parameter), "' is given twice", where));
    return;
  }
  parameters_.push_back(parameter);
  group_of_.push_back(group);
  std::vector<Parameter> slots;
  for (const Slot& slot : slot_kinds_) slots.push_back(MakeSlot(parameter, slot));
  slots_.push_back(std::move(slots));
}

Parameter Optimizer::MakeSlot(const Parameter& parameter, const Slot& slot) {
  Parameter state(parameter.shape(), Constant(slot.initial), {.requires_grad = false, .role = Role::kSlot});
  state.set_owner(parameter);
  return state;
}

void Optimizer::AddSlot(const Slot& slot) {
  const auto has_its_name = [&](const Slot& other) { return other.name == slot.name; };
  if (std::any_of(slot_kinds_.begin(), slot_kinds_.end(), has_its_name)) {
    Reject(absl::StrCat(TypeName(), " would keep two slots of the name ", slot.name));
  }
  slot_kinds_.push_back(slot);
  for (std::size_t i = 0; i < parameters_.size(); ++i) slots_[i].push_back(MakeSlot(parameters_[i], slot));
}

Parameter Optimizer::AddCounter(const char* name) {
  counters_.emplace_back(name, MakeCounter());
  return counters_.back().second;
}

void Optimizer::Reject(const std::string& message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat("optimizer: ", message));
}

void Optimizer::RejectIf(const absl::Status& error) {
  if (!error.ok()) Reject(std::string(error.message()));
}

void Optimizer::CheckBetas(double beta1, double beta2) {
  const std::pair<const char*, double> betas[] = {{"beta1", beta1}, {"beta2", beta2}};
  for (const auto& [name, beta] : betas) {
    if (!(beta >= 0) || beta >= 1) {
      Reject(absl::StrCat("beta1 and beta2 must be in [0, 1), got ", beta1, " and ", beta2));
    } else if (static_cast<float>(beta) == 1) {
      Reject(absl::StrCat("beta1 and beta2 must be in [0, 1), and ", name, " rounds to 1 in f32: 1 - ", name, " is ",
                          1 - beta));
    }
  }
}

absl::Status Optimizer::CheckLossScale(const LossScaleConfig& config) const {
  const bool divides = config.mode == LossScaleConfig::Mode::kStatic && !config.unscale;
  if (!divides || (divides_by_loss_scale() && loss_scale_ == config.init)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("FixedLossScaleManager(loss_scale = ", config.init,
                   ", drop_overflow_update = false) needs an optimizer ", "with the same loss_scale, but ", TypeName(),
                   divides_by_loss_scale() ? absl::StrCat(" has ", loss_scale_) : " has none",
                   ": gradients would be scaled wrongly"));
}

absl::Status Optimizer::SetLearningRate(double learning_rate) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (absl::Status status = CheckSettable(group); !status.ok()) return status;
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (absl::Status status = SetLearningRate(group, learning_rate); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Optimizer::CheckSettable(std::size_t group) const {
  if (group >= groups_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter group ", group, " does not exist; the optimizer has ", groups_.size()));
  }
  if (groups_[group].rate.is_schedule()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a schedule computes the learning rate of parameter group ", group, "; it cannot be set"));
  }
  return absl::OkStatus();
}

absl::Status Optimizer::SetLearningRate(std::size_t group, double learning_rate) {
  if (absl::Status status = CheckSettable(group); !status.ok()) return status;
  const LearningRate rate(learning_rate);
  if (!rate.status().ok()) return rate.status();
  return groups_[group].state.SetData(Tensor::Scalar(static_cast<float>(learning_rate)));
}

absl::StatusOr<double> Optimizer::learning_rate(std::size_t group) const {
  if (group >= groups_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter group ", group, " does not exist; the optimizer has ", groups_.size()));
  }
  if (groups_[group].rate.is_schedule()) {
    return absl::FailedPreconditionError(
        group == 0 ? "a schedule computes the learning rate in the step; ask for it as the record \"learning_rate\""
                   : absl::StrCat("a schedule computes the learning rate of parameter group ", group,
                                  " in the step; the record \"learning_rate\" is that of group 0"));
  }
  absl::StatusOr<Tensor> value = groups_[group].state.Value();
  return value.ok() ? value->TryItem<double>() : value.status();
}

double Optimizer::weight_decay(std::size_t group) const {
  return group < groups_.size() ? groups_[group].weight_decay : 0.0;
}

absl::StatusOr<std::int64_t> Optimizer::step() const {
  absl::StatusOr<Tensor> value = step_.Value();
  return value.ok() ? value->TryItem<std::int64_t>() : value.status();
}

void Optimizer::SetPlace(std::size_t place) {
  prefix_ = place == 0 ? "optimizer" : absl::StrCat("optimizer", place + 1);
}

std::vector<Parameter> Optimizer::State() {
  std::vector<Parameter> state;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (groups_[group].rate.is_schedule()) continue;
    const std::string name = group == 0 ? "learning_rate" : absl::StrCat("group", group, ".learning_rate");
    groups_[group].state.set_name(absl::StrCat(prefix_, ".", name));
    state.push_back(groups_[group].state);
  }
  step_.set_name(absl::StrCat(prefix_, ".step"));
  state.push_back(step_);
  for (auto& [name, counter] : counters_) {
    counter.set_name(absl::StrCat(prefix_, ".", name));
    state.push_back(counter);
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    for (std::size_t slot = 0; slot < slot_kinds_.size(); ++slot) {
      slots_[i][slot].set_name(absl::StrCat(prefix_, ".", parameters_[i].name(), ".", slot_kinds_[slot].name));
      state.push_back(slots_[i][slot]);
    }
  }
  return state;
}

std::vector<Tensor> Optimizer::Rates(const Tensor& step) const {
  std::vector<Tensor> rates;
  for (const Group& group : groups_) {
    rates.push_back(group.rate.is_schedule() ? group.rate.ValueAt(step) : group.state.Read());
  }
  return rates;
}

double Optimizer::DecayOf(std::size_t index) const {
  const std::string& name = parameters_[index].name();
  if (skip_decay_of_norms_ && (absl::StrContains(name, "beta") || absl::StrContains(name, "gamma"))) return 0.0;
  return groups_[group_of_[index]].weight_decay;
}

bool Optimizer::operator()(const std::vector<Tensor>& gradients) {
  auto* trace = mpc::internal::Trace::Current();
  if (trace == nullptr) return false;
  return Apply(gradients, amp::internal::UpdatePredicate(*trace, *this));
}

bool Optimizer::Apply(const std::vector<Tensor>& gradients, const Tensor& predicate) {
  auto* trace = mpc::internal::Trace::Current();
  if (trace == nullptr) return false;
  trace->NotePart(identity_);
  if (!status_.ok()) trace->Fail(std::string(status_.message()));
  if (gradients.size() != parameters_.size()) {
    trace->Fail(
        absl::StrCat("optimizer: got ", gradients.size(), " gradients for ", parameters_.size(), " parameters"));
  }
  if (const std::string scale = WrongScale(*trace, gradients, loss_scale_); !scale.empty()) {
    trace->Fail(absl::StrCat(TypeName(), " has loss_scale = ", loss_scale_, ", but the scale that it has to divide is ",
                             scale, ": gradients would be scaled wrongly"));
  }
  if (trace->failed()) return false;
  prefix_ = trace->state().optimizers().PrefixOf(step_);
  // The loss-scale wrap takes the operations of one path as one optimizer.
  const mpc::internal::CellStack::FixedScope scope(trace->cells(), prefix_);
  State();
  const Tensor step = step_.Read();
  const std::vector<Tensor> rates = Rates(step);
  mpc::internal::StepReport& report = trace->report();
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    trace->updates().AddRate(absl::StrCat(TypeName(), " group ", group),
                             groups_[group].rate.is_schedule() ? Parameter() : groups_[group].state);
  }
  if (prefix_ == "optimizer" && report.wants("learning_rate")) report.Record("learning_rate", rates[0]);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    // Frozen parameters keep their slots and stay as they are.
    // Nor does weight decay touch what the loss does not use; the autodiff pass remarks on it.
    if (!parameters_[i].requires_grad() || trace->updates().IsUnused(parameters_[i])) {
      LeaveOut(i);
      continue;
    }
    if (!trace->updates().Claim(parameters_[i])) {
      trace->Fail(absl::StrCat("parameter '", NameOf(parameters_[i]), "' is updated by two optimizers"));
      return false;
    }
    Operands operands{parameters_[i].Read(), {}, gradients[i], rates[group_of_[i]], step, predicate, DecayOf(i), i};
    for (const Parameter& slot : slots_[i]) operands.slots.push_back(slot.Read());
    const std::vector<Tensor> updated = Update(operands);
    if (trace->failed()) return false;
    trace->state().Assign(parameters_[i], updated[0]);
    for (std::size_t slot = 0; slot < slots_[i].size(); ++slot) {
      trace->state().Assign(slots_[i][slot], updated[slot + 1]);
    }
  }
  const auto advance = [&](const Parameter& counter) {
    std::vector<Tensor> operands{counter.Read()};
    if (predicate.defined()) operands.push_back(predicate);
    trace->state().Assign(counter, trace->Emit("increment", operands, {})[0]);
  };
  advance(step_);
  for (const auto& [name, counter] : counters_) advance(counter);
  return true;
}

std::vector<Tensor> Optimizer::Emit(std::string_view op, const Operands& operands, bool with_step,
                                    const Attributes& attributes) {
  std::vector<Tensor> values{operands.parameter};
  values.insert(values.end(), operands.slots.begin(), operands.slots.end());
  values.push_back(operands.gradient);
  values.push_back(operands.learning_rate);
  if (with_step) values.push_back(operands.step);
  if (operands.predicate.defined()) values.push_back(operands.predicate);
  Attributes all = attributes;
  all.Set("weight_decay", operands.weight_decay);
  return mpc::internal::Trace::Current()->Emit(op, values, all);
}

Tensor Optimizer::Unscaled(const Operands& operands) const {
  auto* trace = mpc::internal::Trace::Current();
  const Tensor& gradient = operands.gradient;
  const Tensor wide = gradient.dtype() == DType::kF32 ? gradient : trace->Emit("cast", {gradient}, {}, DType::kF32)[0];
  return loss_scale_ == 1.0 ? wide : wide * (1.0 / loss_scale_);
}

Tensor Optimizer::Decayed(const Operands& operands) const {
  const Tensor gradient = Unscaled(operands);
  return operands.weight_decay == 0.0 ? gradient : gradient + operands.parameter * operands.weight_decay;
}

Tensor Optimizer::Descend(const Operands& operands, const Tensor& direction, double weight_decay) {
  // Without momentum mpc.sgd does not use its velocity, and the direction stands in its place.
  std::vector<Tensor> values{operands.parameter, direction, direction, operands.learning_rate, operands.step};
  if (operands.predicate.defined()) values.push_back(operands.predicate);
  return mpc::internal::Trace::Current()->Emit("sgd", values, {{"weight_decay", weight_decay}})[0];
}

Tensor Optimizer::Held(const Operands& operands, const Tensor& updated, const Tensor& old) {
  if (!operands.predicate.defined()) return updated;
  return mpc::internal::Trace::Current()->Emit("select", {operands.predicate, updated, old}, {})[0];
}

}  // namespace mpc::nn
