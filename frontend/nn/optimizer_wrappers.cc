#include "frontend/nn/optimizer_wrappers.h"

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/trace.h"
#include "frontend/nn/finite_numbers.h"

namespace mpc::nn {
namespace {

bool HasNoBiasOrLayerNorm(const Parameter& parameter) {
  return !absl::StrContains(parameter.name(), "LayerNorm") && !absl::StrContains(parameter.name(), "bias");
}

Tensor Widened(const Tensor& x) {
  return x.dtype() == DType::kF32 ? x : mpc::internal::Trace::Current()->Emit("cast", {x}, {}, DType::kF32)[0];
}

Tensor Norm(const Tensor& x) { return sqrt(reduce_sum(square(x))); }

}  // namespace

LARS::LARS(std::shared_ptr<Optimizer> inner, const LARSOptions& options)
    : Optimizer(*inner), inner_(std::move(inner)), options_(options) {
  if (!options_.lars_filter) options_.lars_filter = HasNoBiasOrLayerNorm;
  const std::string name = inner_->TypeName();
  if (absl::StrContains(name, "Adam") || absl::StrContains(name, "Lamb")) {
    Reject(absl::StrCat("LARS cannot be used with ", name, ", which adapts its steps itself"));
  }
  RejectIf(internal::CheckPositive("epsilon", options_.epsilon));
  RejectIf(internal::CheckPositive("coefficient", options_.coefficient));
}

std::string LARS::TypeName() const { return absl::StrCat("LARS of ", inner_->TypeName()); }

std::vector<Tensor> LARS::Update(const Operands& operands) {
  Operands scaled = operands;
  scaled.weight_decay = 0.0;
  if (!options_.lars_filter(parameters()[operands.index])) return UpdateOf(*inner_, scaled);
  const Tensor weight_norm = Norm(operands.parameter);
  const Tensor gradient_norm = Norm(Unscaled(operands));
  const Tensor divisor = gradient_norm + weight_norm * operands.weight_decay + options_.epsilon;
  const Tensor one = ops::FullLike(weight_norm, 1.0);
  Tensor ratio = weight_norm * options_.coefficient / divisor;
  if (options_.use_clip) ratio = minimum(ratio / operands.learning_rate, one);
  ratio = where(greater(minimum(weight_norm, gradient_norm), ops::FullLike(weight_norm, 0.0)), ratio, one);
  // The optimizer inside divides by its loss scale.
  const Tensor decayed = loss_scale() == 1.0 ? Decayed(operands) : Decayed(operands) * loss_scale();
  scaled.gradient = decayed * ratio;
  return UpdateOf(*inner_, scaled);
}

EMA::EMA(std::shared_ptr<Optimizer> inner, const EMAOptions& options)
    : Optimizer(*inner), inner_(std::move(inner)), options_(options) {
  AddSlot("average");
  averaged_ = AddCounter("averaged");
  RejectIf(internal::CheckShare("decay", options_.decay));
}

std::string EMA::TypeName() const { return absl::StrCat("EMA of ", inner_->TypeName()); }

std::vector<Tensor> EMA::Update(const Operands& operands) {
  auto* trace = mpc::internal::Trace::Current();
  Operands own = operands;
  own.slots.pop_back();
  std::vector<Tensor> updated = UpdateOf(*inner_, own);
  if (trace->failed()) return updated;
  const Tensor& average = operands.slots.back();
  // The optimizer inside may have counted steps before there were averages.
  const Tensor count = Widened(averaged_.Read());
  const Tensor begun = greater(count, ops::FullLike(count, 0.0));
  const Tensor before = trace->Emit("select", {begun, average, Widened(operands.parameter)}, {})[0];
  const Tensor after = before * options_.decay + Widened(updated[0]) * (1.0 - options_.decay);
  updated.push_back(Held(operands, after, average));
  return updated;
}

void EMA::LeaveOut(std::size_t index) {
  mpc::internal::Trace::Current()->state().Assign(average(index), Widened(parameters()[index].Read()));
  LeaveOutOf(*inner_, index);
}

AveragedWeights::AveragedWeights(const EMA& ema) : status_(Exchange(ema)) {
  if (!status_.ok()) Restore().IgnoreError();
}

AveragedWeights::~AveragedWeights() { Restore().IgnoreError(); }

absl::Status AveragedWeights::Exchange(const EMA& ema) {
  if (!ema.status().ok()) return ema.status();
  const absl::StatusOr<Tensor> averaged = ema.averaged_.Value();
  if (!averaged.ok()) return averaged.status();
  const absl::StatusOr<std::int64_t> updates = averaged->TryItem<std::int64_t>();
  if (!updates.ok()) return updates.status();
  if (*updates == 0) return absl::FailedPreconditionError("EMA: there are no averages before the first update");
  for (std::size_t i = 0; i < ema.parameters().size(); ++i) {
    Parameter weight = ema.parameters()[i];
    absl::StatusOr<Tensor> own = weight.Value();
    if (!own.ok()) return own.status();
    absl::StatusOr<Tensor> average = ema.average(i).Value();
    if (!average.ok()) return average.status();
    const Tensor rounded = average->To(own->dtype());
    weights_.emplace_back(weight, *std::move(own));
    if (absl::Status status = weight.SetData(rounded); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status AveragedWeights::Restore() {
  absl::Status first;
  for (auto& [weight, value] : weights_) first.Update(weight.SetData(value));
  weights_.clear();
  return first;
}

}  // namespace mpc::nn
