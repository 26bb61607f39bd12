// The program of docs/checkpoints.md.
#include <filesystem>
#include <iostream>

#include "models/lenet5.h"
#include "mpc/mpc.h"

using namespace mpc;

int main() {
  std::filesystem::remove_all("run");
  SetSeed(1);
  auto train_set = data::Digits(data::Split::kTrain, {.one_hot = true}).Shuffle(1).Batch(32);
  models::LeNet5 net;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model(net, loss, opt, {.amp_level = "O2"});

  ModelCheckpoint saver({.directory = "run", .save_checkpoint_steps = 20, .keep_checkpoint_max = 3});
  if (auto latest = LatestCheckpoint("run"); latest.ok()) {
    auto report = model.LoadCheckpoint(*latest);
    if (!report.ok()) {
      std::cerr << report.status() << "\n";
      return 1;
    }
    for (const std::string& difference : report->differences) std::cerr << difference << "\n";
  }
  absl::Status trained = model.Train(3, train_set, {LossMonitor(), saver});
  if (!trained.ok()) {
    std::cerr << trained << "\n";
    return 1;
  }

  OnRequestExit on_exit({.save_path = "stopped.safetensors"});
  trained = model.Train(3, train_set, {LossMonitor(), on_exit});
  if (on_exit.signal() != 0) return 128 + on_exit.signal();
  if (!trained.ok()) {
    std::cerr << trained << "\n";
    return 1;
  }

  absl::Status exported = SaveCheckpoint(net, "lenet5_torch.safetensors", {.names = NameMap::PyTorch()});
  auto imported = LoadParamIntoNet(net, "lenet5_torch.safetensors", {.names = NameMap::PyTorch()});
  return exported.ok() && imported.ok() ? 0 : 1;
}
