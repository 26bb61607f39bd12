// The program of docs/weights.md.
#include <iostream>

#include "models/gpt2.h"
#include "models/resnet.h"
#include "mpc/mpc.h"

using namespace mpc;

int main() {
  models::ResNet18 resnet({.width = 4});
  absl::Status made = SaveCheckpoint(resnet, "resnet18.safetensors", "torchvision/resnet18");

  auto loaded = LoadParamIntoNet(resnet, "resnet18.safetensors", "torchvision/resnet18");
  absl::Status saved = SaveCheckpoint(resnet, "resnet18_again.safetensors", "torchvision/resnet18");
  const NameMap torchvision = *NameMap::Preset("torchvision/resnet18");
  absl::Status low = SaveCheckpoint(resnet, "resnet18_bf16.safetensors", {.names = torchvision, .dtype = DType::kBF16});

  absl::StatusOr<models::Gpt2> gpt2 = models::Gpt2::FromFolder("gpt2");
  if (!gpt2.ok()) std::cerr << gpt2.status() << "\n";

  NameMap names = NameMap::PyTorch();
  names.Rename("conv1", "features.0")
      .Join("attention.in_proj", {"query", "key", "value"})
      .Transpose("head")
      .Ignore("mask")
      .Prefix("module");
  return made.ok() && loaded.ok() && saved.ok() && low.ok() ? 0 : 1;
}
