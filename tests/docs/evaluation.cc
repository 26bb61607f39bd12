// The program of docs/evaluation.md.
#include <filesystem>
#include <iostream>

#include "models/lenet5.h"
#include "mpc/mpc.h"

using namespace mpc;

namespace {

int Failed(const absl::Status& status) {
  std::cerr << status << "\n";
  return 1;
}

}  // namespace

int main() {
  std::filesystem::remove_all("evaluated");
  SetSeed(1);
  auto train_set = data::Digits(data::Split::kTrain, {.one_hot = true}).Shuffle(1).Batch(32);
  auto valid_set = data::Digits(data::Split::kTest, {.one_hot = true}).Batch(32);
  models::LeNet5 net;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});

  Model model(net, loss, opt, {.metrics = {"accuracy"}, .amp_level = "O2"});
  absl::Status trained = model.Fit(10, train_set, valid_set, {}, {LossMonitor()});
  if (!trained.ok()) return Failed(trained);

  trained = model.Fit(4, train_set, valid_set, {.valid_frequency = 2});
  trained = model.Fit(4, train_set, valid_set, {.valid_frequency = {1, 4}});
  if (!trained.ok()) return Failed(trained);

  LambdaCallback printer({.on_eval_end = [](RunContext& context) {
    std::cout << "after step " << context.global_step << ": " << context.eval_results().at("eval_accuracy") << "\n";
  }});
  trained = model.Fit(2, train_set, valid_set, {}, {printer});
  if (!trained.ok()) return Failed(trained);

  EarlyStopping stopping({.monitor = "eval_accuracy", .patience = 3, .restore_best_weights = true});
  ReduceLROnPlateau plateau({.factor = 0.5, .patience = 2});
  ModelCheckpoint saver({.directory = "evaluated", .keep_checkpoint_max = 1, .save_best_only = true});
  trained = model.Fit(6, train_set, valid_set, {}, {stopping, plateau, saver});
  std::cout << "best accuracy " << *stopping.best() << " after epoch " << stopping.best_epoch() << "\n";
  if (!trained.ok()) return Failed(trained);

  trained = model.Fit(2, train_set, valid_set, {},
                      {CSVLogger({.filename = "evaluated/run.csv"}),
                       JSONLinesLogger({.filename = "evaluated/run.jsonl", .log_steps = 10}),
                       TensorBoardLogger({.log_dir = "evaluated/tensorboard", .log_steps = 10}), ProgressBar()});
  if (!trained.ok()) return Failed(trained);
  return 0;
}
