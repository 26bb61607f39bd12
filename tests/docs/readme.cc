// The program of README.md.
#include <iostream>

#include "mpc/mpc.h"

using namespace mpc;

class LeNet5 : public nn::Cell {
 public:
  MPC_CELL(LeNet5, conv1, conv2, fc1, fc2, fc3)  // names the members: "conv1.weight", ...
  Tensor Construct(Tensor x) {
    x = max_pool2d(relu(conv1(x)));
    x = max_pool2d(relu(conv2(x)));
    x = flatten(x);
    x = relu(fc1(x));
    x = relu(fc2(x));
    return fc3(x);
  }

 private:
  nn::Conv2d conv1{1, 6, 5, {.pad_mode = "valid"}}, conv2{6, 16, 5, {.pad_mode = "valid"}};
  nn::Dense fc1{400, 120}, fc2{120, 84}, fc3{84, 10};
};

int main() {
  auto train_set = data::Digits(data::Split::kTrain, {.one_hot = true}).Shuffle(1).Batch(32);

  LeNet5 net;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model(net, loss, opt, {.metrics = {"accuracy"}, .amp_level = "O2"});
  absl::Status s = model.Train(2, train_set, {LossMonitor()});

  std::cout << s << "\n";
  return s.ok() ? 0 : 1;
}
