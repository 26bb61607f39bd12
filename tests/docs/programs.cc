// The program of docs/programs.md.
#include "mpc/programs.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "mpc/mpc.h"

using namespace mpc;

namespace {

absl::StatusOr<Tensor> PredictFromFiles(const Tensor& images) {
  absl::StatusOr<runtime::Package> package = runtime::ReadProgramFile("net.mpcx");
  if (!package.ok()) return package.status();
  absl::StatusOr<runtime::StateStore> state = MakeInitialState(*package);
  if (!state.ok()) return state.status();
  absl::StatusOr<std::vector<std::string>> unused = LoadState("net.safetensors", *state);
  if (!unused.ok()) return unused.status();

  const auto predict = std::make_shared<const runtime::Program>(*package->Find("predict"));
  absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(predict->device);
  if (!device.ok()) return device.status();
  absl::StatusOr<std::unique_ptr<runtime::Executable>> executable = (*device)->Load(predict, *state);
  if (!executable.ok()) return executable.status();
  if (absl::Status status = (*executable)->Run({images.bytes()}); !status.ok()) return status;
  if (absl::Status status = (*executable)->Wait(); !status.ok()) return status;
  absl::Span<const std::uint8_t> predictions = (*executable)->output(0);
  return Tensor::FromBytes({DType::kF32, {32, 10}}, predictions.data(), predictions.size());
}

absl::Status Run() {
  SetSeed(1);
  nn::SequentialCell net(nn::Flatten(), nn::Dense(32 * 32, 10));
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model(net, loss, opt);
  auto train_set = data::Digits(data::Split::kTrain).Shuffle(1).Batch(32, /*drop_remainder=*/true);
  if (absl::Status trained = model.Train(1, train_set); !trained.ok()) return trained;

  absl::StatusOr<runtime::Package> package =
      model.MakePackage({{"image", {DType::kF32, {32, 1, 32, 32}}}, {"label", {DType::kI32, {32}}}});
  if (!package.ok()) return package.status();
  if (absl::Status written = runtime::WriteProgramFile("net.mpcx", *package); !written.ok()) return written;
  if (absl::Status saved = SaveCheckpoint(net, "net.safetensors"); !saved.ok()) return saved;

  const Tensor images = Tensor::Full({32, 1, 32, 32}, 0.5);
  absl::StatusOr<Tensor> from_files = PredictFromFiles(images);
  if (!from_files.ok()) return from_files.status();
  absl::StatusOr<Tensor> from_model = model.Predict(images);
  if (!from_model.ok()) return from_model.status();
  const bool equal = std::ranges::equal(from_files->bytes(), from_model->bytes());
  return equal ? absl::OkStatus() : absl::InternalError("the file predicts other numbers than the Model");
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
