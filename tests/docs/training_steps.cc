// The programs of docs/training_steps.md: scalers in a training step, several losses, clipping, groups, schedules.
#include <iostream>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

using Network = nn::SequentialCell;

Network MakeNetwork() {
  return Network{nn::Flatten(), nn::Dense(32 * 32, 32, {.activation = "relu"}), nn::Dense(32, 10)};
}

class TorchStep : public nn::TrainingStep {
 public:
  MPC_CELL(TorchStep, network)
  TorchStep(Network& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}

  Tensor Construct(Tensor image, Tensor label) {
    Tensor loss = softmax_cross_entropy(network(image), label);
    Tensor scaled = scaler.Scale(loss);
    std::vector<Tensor> gradients = ops::Backward(scaled, optimizer.parameters());
    gradients = scaler.Unscale(optimizer, gradients);
    gradients = ops::ClipByGlobalNorm(gradients, 1.0).gradients;
    scaler.Step(optimizer, gradients);
    scaler.Update();
    return loss;
  }

  Network& network;
  nn::Optimizer& optimizer;
  amp::GradScaler scaler;
};

class PaddleStep : public nn::TrainingStep {
 public:
  MPC_CELL(PaddleStep, network)
  PaddleStep(Network& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}

  Tensor Construct(Tensor image, Tensor label) {
    Tensor loss;
    {
      amp::AutoCast guard({.level = "O1"});
      loss = softmax_cross_entropy(network(image), label);
    }
    Tensor scaled = scaler.Scale(loss);
    ops::Backward(scaled, optimizer.parameters());
    scaler.Minimize(optimizer, scaled);
    return loss;
  }

  Network& network;
  nn::Optimizer& optimizer;
  amp::AmpScaler scaler{{.init_loss_scaling = 1024}};
};

class ApexStep : public nn::TrainingStep {
 public:
  MPC_CELL(ApexStep, network)
  ApexStep(Network& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}

  Tensor Construct(Tensor image, Tensor label) {
    Tensor loss = softmax_cross_entropy(network(image), label);
    Tensor scaled = amp::ScaleLoss(loss, optimizer);
    optimizer(ops::Backward(scaled, optimizer.parameters()));
    return loss;
  }

  Network& network;
  nn::Optimizer& optimizer;
};

class DistillationStep : public nn::TrainingStep {
 public:
  MPC_CELL(DistillationStep, student, teacher)
  DistillationStep(Network& student, Network& teacher, nn::Optimizer& optimizer)
      : student(student), teacher(teacher), optimizer(optimizer) {}

  Tensor Construct(Tensor image, Tensor label) {
    teacher.SetTrain(false);
    Tensor taught = stop_gradient(teacher(image));
    Tensor predicted = student(image);
    Tensor loss = softmax_cross_entropy(predicted, label) + mse(predicted, taught);
    optimizer(ops::Backward(loss, optimizer.parameters()));
    return loss;
  }

  Network& student;
  Network& teacher;
  nn::Optimizer& optimizer;
};

class CriticStep : public nn::TrainingStep {
 public:
  MPC_CELL(CriticStep, critic)
  CriticStep(Network& critic, nn::Optimizer& optimizer) : critic(critic), optimizer(optimizer) {}

  Tensor Construct(Tensor real, Tensor fake) {
    Tensor mixed = (real + fake) * 0.5;
    Tensor slope = ops::Grad(reduce_sum(critic(mixed)), {mixed})[0];
    Tensor penalty = reduce_mean(square(norm(slope, 2, {1, 2, 3}) - 1.0));
    Tensor loss = reduce_mean(critic(fake)) - reduce_mean(critic(real)) + penalty * 10.0;
    optimizer(ops::Backward(loss, optimizer.parameters()));
    return loss;
  }

  Network& critic;
  nn::Optimizer& optimizer;
};

absl::Status Report(const char* what, const absl::Status& status) {
  std::cout << what << ": " << status << "\n";
  return status;
}

absl::Status RunTorch(const data::Dataset& train_set) {
  Network net = MakeNetwork();
  nn::SGD opt(net.TrainableParams(), {.learning_rate = 0.02, .momentum = 0.9});

  TorchStep step(net, opt);
  Model model(step, {.amp_level = "O1"});
  absl::Status trained = model.Train(2, train_set, {LossMonitor()});

  return Report("torch", trained);
}

absl::Status RunPaddle(const data::Dataset& train_set) {
  Network net = MakeNetwork();
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.02, .momentum = 0.9});

  PaddleStep step(net, opt);
  step.SetTrain();
  for (auto& batch : train_set.CreateDictIterator()) {
    Tensor loss = step(batch["image"], batch["label"]);
    if (!loss.status().ok()) return loss.status();
  }
  absl::Status set = step.scaler.SetIncrEveryNSteps(100);
  amp::ScalerState state = step.scaler.StateDict();

  return Report("paddle", state.at("scale") > 0 ? set : absl::InternalError("no scale"));
}

absl::Status RunApex(const data::Dataset& train_set) {
  Network net = MakeNetwork();
  nn::SGD opt(net.TrainableParams(), {.learning_rate = 0.02, .momentum = 0.9});

  absl::Status initialized = amp::Initialize(net, opt, {.level = "O2", .loss_scale = "dynamic"});
  if (!initialized.ok()) return initialized;
  ApexStep step(net, opt);
  Model model(step);
  absl::Status trained = model.Train(2, train_set, {LossMonitor()});

  return Report("apex", trained);
}

absl::Status RunDistillation(const data::Dataset& train_set) {
  Network student = MakeNetwork(), teacher = MakeNetwork();
  absl::Status frozen = teacher.SetRequiresGrad("", false);
  nn::SGD opt(student.TrainableParams(), {.learning_rate = 0.02, .momentum = 0.9});
  DistillationStep step(student, teacher, opt);
  Model model(step);
  const absl::Status trained = model.Train(1, train_set);
  return Report("distillation", trained.ok() ? frozen : trained);
}

absl::Status RunCritic(const data::Dataset& train_set) {
  Network critic{nn::Flatten(), nn::Dense(32 * 32, 32, {.activation = "relu"}), nn::Dense(32, 1)};
  nn::Adam opt(critic.TrainableParams(), {.learning_rate = 0.001});
  CriticStep step(critic, opt);
  step.SetTrain();
  for (auto& batch : train_set.CreateDictIterator()) {
    Tensor loss = step(batch["image"], Tensor::Zeros(batch["image"].shape()));
    if (!loss.status().ok()) return Report("critic", loss.status());
  }
  return Report("critic", absl::OkStatus());
}

absl::Status RunGroups(const data::Dataset& train_set) {
  nn::Flatten flatten;
  nn::Dense backbone(32 * 32, 32, {.activation = "relu"});
  nn::Dense head(32, 10);
  Network net{flatten, backbone, head};
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});

  nn::SGD opt({{.params = backbone.TrainableParams(), .learning_rate = 0.01},
               {.params = head.TrainableParams(),
                .learning_rate = nn::CosineDecay({.learning_rate = 0.1, .total_steps = 90, .warmup_steps = 9}),
                .weight_decay = 0.0}},
              {.momentum = 0.9, .weight_decay = 1e-4});
  Model model(net, loss, opt, {.clip_global_norm = 1.0, .record_gradient_norm = true});
  absl::Status trained = model.Train(1, train_set, {LossMonitor()});
  absl::Status set = opt.SetLearningRate(0, 0.001);

  nn::Momentum decaying(net.TrainableParams(), {.learning_rate = [](Tensor step) { return exp(step * -0.01) * 0.1; }});

  return Report("groups", !trained.ok() ? trained : set);
}

absl::Status RunAverages(const data::Dataset& train_set) {
  Network net = MakeNetwork();
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});

  nn::EMA averaging(nn::Lion(net.TrainableParams(), {.learning_rate = 1e-3}), {.decay = 0.9});
  Model averaged_model(net, loss, averaging, {.metrics = {"accuracy"}});
  absl::Status averaged = averaged_model.Train(1, train_set);
  const nn::AveragedWeights weights(averaging);
  const auto measured = averaged_model.Eval(train_set);

  if (averaged.ok()) averaged = !weights.status().ok() ? weights.status() : measured.status();
  return Report("averages", averaged);
}

}  // namespace

int main() {
  const data::Dataset train_set = data::Digits(data::Split::kTrain).Shuffle(1).Batch(32);
  for (auto* run : {&RunTorch, &RunPaddle, &RunApex, &RunDistillation, &RunCritic, &RunGroups, &RunAverages}) {
    if (!run(train_set).ok()) return 1;
  }
  return 0;
}
