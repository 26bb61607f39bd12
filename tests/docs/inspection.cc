// The programs of docs/inspection.md.
#include <algorithm>
#include <iostream>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

class Net : public nn::Cell {
 public:
  MPC_CELL(Net, hidden, out)
  Tensor Construct(Tensor x) {
    const Tensor features = Tap("features", relu(hidden(flatten(x))));
    return ops::Print(out(features), "logits: ");
  }
  nn::Dense hidden{32 * 32, 16}, out{16, 10};
};

class LargestFeature : public Callback {
 public:
  void OnStepEnd(RunContext& context) override {
    for (float value : context.Tap("features").ToFloats()) largest = std::max(largest, value);
  }
  float largest = 0;
};

absl::Status Run() {
  const data::Dataset train_set = data::Digits(data::Split::kTrain).Batch(512);
  Net net;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.02, .momentum = 0.9});
  Model model(net, loss, opt, {.amp_level = "O2", .diagnose_overflow = true});

  LargestFeature feature;
  PrecisionProfiler profiler(model, {.every = 2});
  absl::Status status = model.Train(1, train_set, {feature, profiler});
  if (!status.ok()) return status;
  std::cout << feature.largest << "\n" << profiler.profile().Table();

  const data::NamedRow batch = *train_set.CreateDictIterator().begin();
  absl::StatusOr<std::vector<ValueStatistics>> values = model.Measure({batch["image"], batch["label"]});
  if (!values.ok()) return values.status();
  for (const ValueStatistics& value : *values) std::cout << value.Describe() << ": " << value.largest << "\n";
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
