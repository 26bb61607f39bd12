// The pipelines of pictures of docs/data.md, over copies of one picture in two class folders, and over digits.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

namespace fs = std::filesystem;

absl::Status Run() {
  namespace vision = data::vision;
  auto train_set = data::ImageFolderDataset("flowers/train")
                       .Shuffle(1)
                       .Map({vision::Decode(), vision::RandomResizedCrop({224, 224}, {.seed = 1}),
                             vision::RandomHorizontalFlip(0.5f, /*seed=*/1), vision::Rescale(1.0f / 255),
                             vision::Normalize({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}), vision::HWC2CHW()},
                            "image", {.num_parallel_workers = 4})
                       .Batch(32, /*drop_remainder=*/true)
                       .Prefetch();
  auto batches = train_set.CreateDictIterator();
  for (auto& batch : batches) {
    std::cout << batch["image"].spec().ToString() << " " << batch["label"].spec().ToString() << "\n";
  }
  return batches.status();
}

absl::Status Mix() {
  auto mixed = data::Digits(data::Split::kTrain)
                   .Shuffle(1)
                   .Map(data::vision::RandomErasing({.prob = 0.1f, .seed = 1}), "image")
                   .Map(data::vision::OneHot(10), "label")
                   .Batch(32, /*drop_remainder=*/true)
                   .Map(data::vision::MixUpBatch(0.2, /*seed=*/1), {"image", "label"});
  auto batches = mixed.CreateDictIterator();
  int count = 0;
  for (auto& batch : batches) {
    if (count++ == 0) std::cout << batch["image"].spec().ToString() << " " << batch["label"].spec().ToString() << "\n";
  }
  return batches.status();
}

}  // namespace

int main() {
  std::string folder = (fs::temp_directory_path() / "mpc_docs_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  for (const char* name : {"daisy", "rose"}) {
    const fs::path class_folder = fs::path(folder) / "flowers/train" / name;
    fs::create_directories(class_folder);
    for (int i = 0; i < 20; ++i) fs::copy_file(MPC_PICTURE, class_folder / (std::to_string(i) + ".jpg"));
  }
  fs::current_path(folder);
  absl::Status status = Run();
  status.Update(Mix());
  fs::current_path("/");
  fs::remove_all(folder);
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
