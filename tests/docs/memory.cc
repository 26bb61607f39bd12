// The programs of docs/memory.md: blocks that the backward pass computes again, heads in chunks.
#include <iostream>
#include <vector>

#include "frontend/mpc.h"

namespace {

using namespace mpc;

class Blocks : public nn::Cell {
 public:
  MPC_CELL(Blocks, blocks, head)
  Tensor Construct(Tensor x) { return head(blocks(flatten(x))); }

  nn::SequentialCell blocks{nn::Dense(32 * 32, 32, {.activation = "relu"}), nn::Dense(32, 32, {.activation = "relu"})};
  nn::Dense head{32, 10};
};

absl::Status Run() {
  absl::Status set = SetContext({.head_chunks = 8});
  if (!set.ok()) return set;
  Blocks net;
  for (auto& block : net.blocks) block.cell().Recompute();
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::SGD opt(net.TrainableParams(), {.learning_rate = 0.02});
  Model model(net, loss, opt);
  return model.Train(1, data::Digits(data::Split::kTrain).Batch(32));
}

}  // namespace

int main() {
  const absl::Status status = Run();
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
