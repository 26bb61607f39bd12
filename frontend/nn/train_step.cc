#include "frontend/nn/train_step.h"

#include "frontend/compiled_step.h"

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
  return loss_.Flat(for_loss).at(0);
}

void WithLossCell::VisitMembers(internal::MemberVisitor& visitor) {
  visitor.Visit("network", *network_.cell());
  visitor.Visit("loss", *loss_.cell());
}

void TrainOneStepCell::VisitMembers(internal::MemberVisitor& visitor) {
  visitor.Visit("network", *network.cell());
  Cell::VisitMembers(visitor);
}

Tensor TrainOneStepCell::Construct(const std::vector<Tensor>& inputs) {
  const Tensor seed = sens == 1.0 ? Tensor() : ops::Fill(DType::kF32, {}, sens);
  ops::ValueAndGradResult result = ops::ValueAndGrad(network, weights, inputs, seed);
  return ops::Depend(result.value, optimizer(grad_reducer(std::move(result.gradients))));
}

std::vector<Tensor> TrainOneStepCell::GradWithSens(std::vector<Tensor> tensors) {
  const Tensor cotangent = tensors.back();
  tensors.pop_back();
  return ops::ValueAndGrad(network, weights, tensors, cotangent).gradients;
}

void TrainOneStepCell::ConfigureStep(mpc::internal::StepOptions& options) {
  options.name = "train_step";
  // The network is what the levels act in; a loss Cell inside it excludes itself.
  options.networks = {network.cell()};
  if (auto* with_loss = dynamic_cast<WithLossCell*>(network.cell())) {
    options.networks = {with_loss->network().cell()};
  }
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
