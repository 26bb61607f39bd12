// A project outside mpc: defines a Cell of its own, trains it two steps at O2 and says where the data were found.
#include <iostream>

#include "mpc/models/lenet5.h"
#include "mpc/mpc.h"
#include "mpc/programs.h"

namespace {

class Net : public mpc::nn::Cell {
 public:
  MPC_CELL(Net, conv, norm, fc)
  mpc::Tensor Construct(const mpc::Tensor& x) {
    mpc::Tensor y = max_pool2d(relu(norm(conv(x))));
    return fc(flatten(y));
  }

 private:
  mpc::nn::Conv2d conv{1, 4, 3};
  mpc::nn::BatchNorm2d norm{4};
  mpc::nn::Dense fc{4 * 16 * 16, 10};
};

class LossPrinter : public mpc::Callback {
 public:
  void OnStepEnd(mpc::RunContext& context) override {
    std::cout << "step " << context.global_step << ", loss " << context.loss() << "\n";
  }
};

absl::Status Run() {
  mpc::SetSeed(1);
  std::cout << "LeNet-5 has " << mpc::models::LeNet5().TrainableParams().size() << " parameters\n";
  Net net;
  mpc::nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  mpc::nn::Momentum optimizer(net.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
  mpc::Model model(net, loss, optimizer, {.amp_level = "O2"});

  absl::StatusOr<std::string> path = mpc::data::FindDataFile("digits.csv.gz");
  if (!path.ok()) return path.status();
  std::cout << "digits: " << *path << "\n";
  const mpc::data::Dataset digits = mpc::data::Digits(mpc::data::Split::kTrain);
  std::vector<mpc::data::Row> rows;
  for (auto& row : digits.CreateDictIterator()) {
    rows.push_back(row.values());
    if (rows.size() == 64) break;
  }
  const absl::Status trained =
      model.Train(1, mpc::data::GeneratorDataset(rows, {"image", "label"}).Batch(32), {LossPrinter()});
  if (!trained.ok()) return trained;

  const absl::StatusOr<mpc::runtime::Package> package =
      model.MakePackage({{"image", {mpc::DType::kF32, {32, 1, 32, 32}}}, {"label", {mpc::DType::kI32, {32}}}});
  if (!package.ok()) return package.status();
  const absl::StatusOr<mpc::runtime::StateStore> state = mpc::MakeInitialState(*package);
  if (!state.ok()) return state.status();
  std::cout << "a package begins with " << state->entries().size() << " state entries\n";
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
