// The programs of docs/amp.md: options of a level, a scope with a level of its own, two losses of one step.
#include <iostream>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

using Network = nn::SequentialCell;

Network MakeNetwork() {
  return Network{nn::Flatten(), nn::Dense(32 * 32, 32, {.activation = "tanh"}), nn::Dense(32, 10)};
}

class ScopedStep : public nn::TrainingStep {
 public:
  MPC_CELL(ScopedStep, network)
  ScopedStep(Network& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}

  Tensor Construct(Tensor image, Tensor label) {
    Tensor loss;
    const auto network = [&](const Tensor& image, const Tensor& label) {
      return softmax_cross_entropy(this->network(image), label);
    };
    {
      amp::AutoCast guard({.level = "O1", .dtype = "bf16", .deny_add = {"tanh"}});
      loss = network(image, label);
    }
    optimizer(ops::Backward(loss, optimizer.parameters()));
    return loss;
  }

  Network& network;
  nn::Optimizer& optimizer;
};

class TwoLosses : public nn::TrainingStep {
 public:
  MPC_CELL(TwoLosses, first, second)
  TwoLosses(nn::Dense& first, nn::Dense& second, nn::Optimizer& optimizer_x, nn::Optimizer& optimizer_y)
      : first(first), second(second), optimizer_x(optimizer_x), optimizer_y(optimizer_y) {}

  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = reduce_sum(first(x));
    optimizer_x(ops::Backward(loss_x, optimizer_x.parameters()));
    const Tensor loss_y = reduce_sum(first(second(y)));
    optimizer_y(ops::Backward(loss_y, optimizer_y.parameters()));
    return loss_x + loss_y;
  }

  nn::Dense& first;
  nn::Dense& second;
  nn::Optimizer& optimizer_x;
  nn::Optimizer& optimizer_y;
};

absl::Status RunOptions(const data::Dataset& train_set) {
  Network net = MakeNetwork();
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::SGD opt(net.TrainableParams(), {.learning_rate = 0.02});
  Model model(net, loss, opt,
              {.amp = {.level = "O2", .dtype = "bf16", .keep_batchnorm_fp32 = "False", .loss_scale = 128.0}});
  return model.Train(1, train_set);
}

absl::Status RunScope(const data::Dataset& train_set) {
  Network net = MakeNetwork();
  nn::SGD opt(net.TrainableParams(), {.learning_rate = 0.02});
  ScopedStep step(net, opt);
  Model model(step);
  return model.Train(1, train_set);
}

absl::Status RunTwoLosses() {
  nn::Dense first(4, 4), second(4, 4);
  nn::SGD optimizer_x(first.TrainableParams(), {.learning_rate = 0.02});
  nn::SGD optimizer_y(second.TrainableParams(), {.learning_rate = 0.02});
  TwoLosses step(first, second, optimizer_x, optimizer_y);
  return step(Tensor::Full({2, 4}, 1.0), Tensor::Full({2, 4}, 1.0)).status();
}

}  // namespace

int main() {
  const data::Dataset train_set = data::Digits(data::Split::kTrain).Shuffle(1).Batch(32);
  for (const absl::Status& status : {RunOptions(train_set), RunScope(train_set), RunTwoLosses()}) {
    std::cout << status << "\n";
    if (!status.ok()) return 1;
  }
  return 0;
}
