// The program of docs/precision.md.
#include <filesystem>
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

absl::Status Run(const std::string& path) {
  const data::Dataset train_set = data::Digits(data::Split::kTrain).Batch(512);
  Net net;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.02, .momentum = 0.9});
  Model model(net, loss, opt, {.amp_level = "O2"});

  absl::Status status = model.LockPrecision(path, train_set);       // once: the file goes into the repository
  if (status.ok()) status = model.CheckPrecision(path, train_set);  // from then on, before training
  if (!status.ok()) return status;
  status = model.Train(1, train_set);
  if (!status.ok()) return status;
  const absl::StatusOr<std::string> lock = model.PrecisionLock();  // the text, of the step that has trained
  if (!lock.ok()) return lock.status();
  std::cout << *lock;
  return absl::OkStatus();
}

}  // namespace

int main() {
  const std::string path = (std::filesystem::temp_directory_path() / "mpc_docs_precision.lock").string();
  std::filesystem::remove(path);
  const absl::Status status = Run(path);
  std::filesystem::remove(path);
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
