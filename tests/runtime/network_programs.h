// The Programs of small networks, for tests of what every Program promises.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/bert.h"
#include "models/bnnet.h"
#include "models/gpt2.h"
#include "models/lenet5.h"
#include "models/resnet.h"
#include "mpc/mpc.h"
#include "runtime/program_file.h"

namespace mpc::testing {

inline const std::vector<std::string>& SmallNetworks() {
  static const auto* const names = new std::vector<std::string>{"lenet5", "bnnet", "resnet", "gpt2", "bert"};
  return *names;
}

template <typename Network, typename Loss>
absl::StatusOr<runtime::Package> PackageOf(Network&& network, Loss&& loss, const std::string& level,
                                           const std::vector<std::pair<std::string, TensorSpec>>& columns) {
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  Model model(network, loss, optimizer, {.amp_level = level, .device = GetContext().device});
  return model.MakePackage(columns);
}

/// The Programs "train_step", "eval_step" and "predict" of one of SmallNetworks(), at O0 or, in f16, at `level`, for
/// the context's device and architecture.
inline absl::StatusOr<std::vector<runtime::Program>> ProgramsOf(const std::string& network, const std::string& level) {
  const auto images = [](std::int64_t channels, std::int64_t size) {
    return std::vector<std::pair<std::string, TensorSpec>>{{"image", {DType::kF32, {4, channels, size, size}}},
                                                           {"label", {DType::kF32, {4, 10}}}};
  };
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  absl::StatusOr<runtime::Package> package = absl::InvalidArgumentError("no such network: " + network);
  if (network == "lenet5") package = PackageOf(models::LeNet5(), loss, level, images(1, 32));
  if (network == "bnnet") package = PackageOf(models::BnNet(), loss, level, images(1, 32));
  if (network == "resnet") {
    package = PackageOf(
        models::ResNet18({.num_classes = 10, .num_channels = 3, .stem = models::ResNetStem::kCifar, .width = 8}), loss,
        level, images(3, 16));
  }
  const std::vector<std::pair<std::string, TensorSpec>> tokens = {{"data", {DType::kI32, {2, 12}}},
                                                                  {"label", {DType::kI32, {2, 12}}}};
  if (network == "gpt2") {
    package = PackageOf(models::Gpt2({.vocabulary = 19, .context = 12, .width = 32, .layers = 2, .heads = 4}),
                        models::NextTokenLoss(), level, tokens);
  }
  if (network == "bert") {
    package = PackageOf(models::Bert({.vocabulary = 19, .context = 12, .width = 32, .layers = 2, .heads = 4}),
                        models::MaskedTokenLoss(), level, tokens);
  }
  if (!package.ok()) return package.status();
  return std::move(package->programs);
}

}  // namespace mpc::testing
