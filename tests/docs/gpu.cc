// The programs of docs/gpu.md.
#include <iostream>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

class Net : public nn::Cell {
 public:
  MPC_CELL(Net, hidden, out)
  Tensor Construct(Tensor x) { return out(relu(hidden(flatten(x)))); }
  nn::Dense hidden{32 * 32, 16}, out{16, 10};
};

class EvaluateEvery : public Callback {
 public:
  EvaluateEvery(Model& model, data::Dataset dataset, std::int64_t steps)
      : model_(model), dataset_(std::move(dataset)), steps_(steps) {}
  bool NeedsState(const RunContext& context) const override { return (context.global_step + 1) % steps_ == 0; }
  void OnStepEnd(RunContext& context) override {
    if (context.global_step % steps_ != 0) return;
    auto metrics = model_.Eval(dataset_);
    if (!metrics.ok()) return context.Fail(metrics.status());
    std::cout << "step " << context.global_step << ": accuracy " << metrics->at("accuracy") << "\n";
  }

 private:
  Model& model_;
  data::Dataset dataset_;
  std::int64_t steps_;
};

absl::Status Run() {
  absl::Status status = SetContext({.device = "cuda", .steps_per_launch = 8});
  if (!status.ok()) {
    std::cerr << status.message() << "; training on the CPU\n";
    status = SetContext({});
  }
  if (!status.ok()) return status;

  Net net;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.02, .momentum = 0.9});
  Model model(net, loss, opt, {.metrics = {"accuracy"}, .amp_level = "O2"});
  EvaluateEvery evaluate(model, data::Digits(data::Split::kTest).Batch(32), 20);
  return model.Train(1, data::Digits(data::Split::kTrain).Batch(32), {evaluate});
}

}  // namespace

int main() {
  const absl::Status status = Run();
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
