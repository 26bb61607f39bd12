// The programs of docs/memory.md.
#include <iostream>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

class Block : public nn::Cell {
 public:
  MPC_CELL(Block, norm, hidden, out)
  Tensor Construct(Tensor x) { return x + out(gelu(hidden(norm(x)))); }
  nn::LayerNorm norm{{64}};
  nn::Dense hidden{64, 128}, out{128, 64};
};

class Net : public nn::Cell {
 public:
  MPC_CELL(Net, reduce, blocks, head)
  Tensor Construct(Tensor x) {
    x = reduce(flatten(x));
    for (auto& block : blocks) x = block(x);
    return head(x);
  }
  nn::Dense reduce{32 * 32, 64};
  nn::CellList blocks{{Block(), Block()}};
  nn::Dense head{64, 10};
};

/// Bytes that the training step plans.
absl::StatusOr<std::size_t> Train(Net& net) {
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.02, .momentum = 0.9});
  Model model(net, loss, opt);
  const absl::Status status = model.Train(1, data::Digits(data::Split::kTrain).Batch(256));
  if (!status.ok()) return status;
  return model.peak_bytes();
}

absl::Status Run() {
  Net net;
  const absl::StatusOr<std::size_t> kept = Train(net);
  for (auto& block : net.blocks) block.cell().Recompute();
  const absl::StatusOr<std::size_t> recomputed = Train(net);
  if (!kept.ok() || !recomputed.ok()) return kept.ok() ? recomputed.status() : kept.status();
  std::cout << *kept << " bytes, with Recompute() " << *recomputed << "\n";
  if (*recomputed >= *kept) return absl::InternalError("Recompute() has saved nothing");

  absl::Status status = SetContext({.head_chunks = 8});
  return status.ok() ? Train(net).status() : status;
}

}  // namespace

int main() {
  const absl::Status status = Run();
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
