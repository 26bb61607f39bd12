#include <iostream>

#include "mpc/mpc.h"

using namespace mpc;

class LeNet5 : public nn::Cell {
 public:
  MPC_CELL(LeNet5, conv1, conv2, fc1, fc2, fc3)

  explicit LeNet5(int num_classes = 10, int num_channels = 1)
      : conv1(num_channels, 6, 5, {.pad_mode = "valid"}),
        conv2(6, 16, 5, {.pad_mode = "valid"}),
        fc1(16 * 5 * 5, 120),
        fc2(120, 84),
        fc3(84, num_classes) {}

  Tensor Construct(Tensor x) {
    x = max_pool2d(relu(conv1(x)));
    x = max_pool2d(relu(conv2(x)));
    x = flatten(x);
    x = relu(fc1(x));
    x = relu(fc2(x));
    return fc3(x);
  }

 private:
  nn::Conv2d conv1, conv2;
  nn::Dense fc1, fc2, fc3;
};

int main() {
  SetSeed(1);
  auto train_set = data::Digits(data::Split::kTrain, {.one_hot = true}).Shuffle(1).Batch(32);
  auto test_set = data::Digits(data::Split::kTest, {.one_hot = true}).Batch(32);

  LeNet5 net;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model(net, loss, opt, {.metrics = {"accuracy"}, .amp_level = "O2"});

  absl::Status trained = model.Train(10, train_set, {LossMonitor()});
  if (!trained.ok()) {
    std::cerr << trained << "\n";
    return 1;
  }
  auto metrics = model.Eval(test_set);
  if (!metrics.ok()) {
    std::cerr << metrics.status() << "\n";
    return 1;
  }
  std::cout << "accuracy on 360 test digits: " << metrics->at("accuracy") << "\n";

  absl::Status saved = SaveCheckpoint(net, "lenet5.safetensors");
  if (!saved.ok()) std::cerr << saved << "\n";
  return saved.ok() ? 0 : 1;
}
