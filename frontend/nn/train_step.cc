#include "frontend/nn/train_step.h"

#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/graph/cell_members.h"
#include "frontend/graph/step_options.h"
#include "frontend/nn/loss.h"

namespace mpc::nn {

Tensor WithLossCell::Construct(const std::vector<Tensor>& inputs) {
  auto* trace = mpc::internal::Trace::Current();
  if (inputs.size() < 2) {
    trace->Fail("WithLossCell takes the network's inputs and a label");
    return trace->Poison({});
  }
  const std::vector<Tensor> data(inputs.begin(), inputs.end() - 1);
  std::vector<Tensor> for_loss = network_.Flat(data);
  for_loss.push_back(inputs.back());
  // Nothing masks a row of this loss, whatever its reduction is.
  if (const Tensor& logits = for_loss.front();
      dynamic_cast<const SoftmaxCrossEntropyWithLogits*>(loss_.cell()) != nullptr && logits.rank() == 2) {
    trace->report().ExpectLabels(inputs.back(), logits.dim(1));
  }
  return loss_.Flat(for_loss).at(0);
}

void WithLossCell::VisitMembers(internal::MemberVisitor& visitor) {
  visitor.Visit("network", *network_.cell());
  visitor.Visit("loss", *loss_.cell());
}

namespace {

/// The networks among a step's members.
std::vector<const Cell*> NetworksOf(TrainingStep& step) {
  std::vector<const Cell*> networks;
  internal::ForEachMember(step, [&](const std::string&, Cell& cell) {
    if (cell.is_loss()) return;
    const auto* with_loss = dynamic_cast<const WithLossCell*>(&cell);
    networks.push_back(with_loss != nullptr ? with_loss->network().cell() : &cell);
  });
  return networks;
}

}  // namespace

bool TrainingStep::transparent() const { return NetworksOf(const_cast<TrainingStep&>(*this)).size() <= 1; }

void TrainingStep::ConfigureStep(mpc::internal::StepOptions& options) {
  options.name = "train_step";
  options.networks = NetworksOf(*this);
  NameOptimizers(options);
}

void TrainingStep::NameOptimizers(mpc::internal::StepOptions& options) const {
  const std::vector<Optimizer*> named = optimizers();
  for (std::size_t place = 0; place < named.size(); ++place) {
    named[place]->SetPlace(place);
    options.optimizers.push_back(named[place]->step_counter());
  }
}

void TrainOneStepCell::VisitMembers(internal::MemberVisitor& visitor) {
  visitor.Visit("network", *network.cell());
  Cell::VisitMembers(visitor);
}

void TrainOneStepCell::FollowOptimizer() {
  if (weights != weights_of_optimizer_) return;
  weights = weights_of_optimizer_ = optimizer.parameters();
}

Tensor TrainOneStepCell::Construct(const std::vector<Tensor>& inputs) {
  FollowOptimizer();
  const Tensor seed = sens == 1.0 ? Tensor() : ops::Fill(DType::kF32, {}, sens);
  ops::ValueAndGradResult result = ops::ValueAndGrad(network, weights, inputs, seed);
  return ops::Depend(result.value, optimizer(gradient_clip_.Apply(grad_reducer(std::move(result.gradients)))));
}

std::vector<Tensor> TrainOneStepCell::GradWithSens(std::vector<Tensor> tensors) {
  const Tensor cotangent = tensors.back();
  tensors.pop_back();
  return ops::ValueAndGrad(network, weights, tensors, cotangent).gradients;
}

std::vector<Tensor> TrainOneStepCell::grad_reducer(std::vector<Tensor> gradients) const {
  if (GetAutoParallelContext().parallel_mode != ParallelMode::kDataParallel) return gradients;
  return DistributedGradReducer()(gradients);
}

void TrainOneStepCell::ConfigureStep(mpc::internal::StepOptions& options) {
  options.name = "train_step";
  // The network is what the levels act in; a loss Cell inside it excludes itself.
  options.networks = {predicted_network().cell()};
  FollowOptimizer();
  NameOptimizers(options);
}

CellFunction TrainOneStepCell::predicted_network() const {
  const auto* with_loss = dynamic_cast<const WithLossCell*>(network.cell());
  return with_loss != nullptr ? with_loss->network() : network;
}

Tensor TrainOneStepWithLossScaleCell::Construct(const std::vector<Tensor>& inputs) {
  absl::Status status = scaler_->config().Validate();
  if (status.ok()) status = optimizer.CheckLossScale(scaler_->config());
  if (!status.ok()) mpc::internal::Trace::Current()->Fail(std::string(status.message()));
  return TrainOneStepCell::Construct(inputs);
}

void TrainOneStepWithLossScaleCell::ConfigureStep(mpc::internal::StepOptions& options) {
  TrainOneStepCell::ConfigureStep(options);
  const LossScaleConfig& config = scaler_->config();
  options.compile.loss_scale = std::string(config.mode_name());
  options.compile.skip = config.skip;
  options.compile.unscale = config.unscale;
  if (config.mode != LossScaleConfig::Mode::kNone) options.scaler = scaler_->state();
}

}  // namespace mpc::nn
