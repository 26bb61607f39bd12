// The training step of docs/getting_started.md, run by hand and by a Model, and the pipeline of docs/data.md.
#include <iostream>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

class Step : public nn::TrainOneStepCell {
 public:
  MPC_CELL(Step)
  using TrainOneStepCell::TrainOneStepCell;
  Tensor Construct(const Tensor& image, const Tensor& label) {
    Tensor loss = network(image, label);
    std::vector<Tensor> gradients = grad(image, label, ops::Fill(DType::kF32, loss.shape(), sens));
    return ops::Depend(loss, optimizer(grad_reducer(gradients)));
  }
};

absl::Status Run() {
  const data::Dataset digits = data::Digits(data::Split::kTrain);
  std::vector<data::Row> rows;
  for (auto& row : digits.CreateDictIterator()) rows.push_back(row.values());
  auto train_set = data::GeneratorDataset(rows, {"image", "label"})
                       .Map([](const Tensor& image) { return image; }, "image")
                       .Shuffle(1)
                       .Batch(32, /*drop_remainder=*/true)
                       .Prefetch();

  nn::SequentialCell net{nn::Flatten(), nn::Dense(32 * 32, 32, {.activation = "relu"}), nn::Dense(32, 10)};
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.02, .momentum = 0.9});

  nn::WithLossCell with_loss(net, loss);
  Step step(with_loss, opt);
  step.SetTrain();
  for (auto& batch : train_set.CreateDictIterator()) {
    Tensor value = step(batch["image"], batch["label"]);
    if (!value.status().ok()) return value.status();
  }

  Model model(step, {.amp_level = "O3", .amp_dtype = DType::kBF16});
  return model.Train(2, train_set, {LossMonitor()});
}

}  // namespace

int main() {
  const absl::Status status = Run();
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
