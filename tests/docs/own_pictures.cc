// The program of docs/own_pictures.md, over copies of two pictures in two class folders.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "mpc/mpc.h"

namespace {

using namespace mpc;

namespace fs = std::filesystem;
namespace vision = data::vision;

data::Dataset TrainingPictures(const std::string& folder) {
  return data::ImageFolderDataset(folder)
      .Shuffle(1)
      .Map({vision::RandomCropDecodeResize({32, 32}, {.antialias = true, .seed = 1}),
            vision::RandomHorizontalFlip(0.5f, /*seed=*/1), vision::ToTensor()},
           "image", {.num_parallel_workers = 2})
      .Batch(16, /*drop_remainder=*/true);
}

data::Dataset TestPictures(const std::string& folder) {
  return data::ImageFolderDataset(folder)
      .Map({vision::Decode(), vision::Resize({32, 32}, vision::Inter::kBilinear, {.antialias = true}),
            vision::ToTensor()},
           "image", {.num_parallel_workers = 2})
      .Batch(16);
}

class Network : public nn::Cell {
 public:
  MPC_CELL(Network, conv1, bn1, conv2, bn2, head)
  explicit Network(std::int64_t classes) : head(64, classes) {}
  Tensor Construct(Tensor x) {
    x = max_pool2d(relu(bn1(conv1(x))));
    x = relu(bn2(conv2(x)));
    return head(global_avg_pool2d(x));
  }

 private:
  nn::Conv2d conv1{3, 32, 3}, conv2{32, 64, 3};
  nn::BatchNorm2d bn1{32}, bn2{64};
  nn::Dense head;
};

/// Trains, and prints what the network takes each picture of a folder for.
absl::Status Run() {
  data::Dataset train_set = TrainingPictures("pets/train");
  data::Dataset test_set = TestPictures("pets/test");
  if (!train_set.status().ok()) return train_set.status();

  Network net(static_cast<std::int64_t>(train_set.class_names().size()));
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum opt(net.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
  Model model(net, loss, opt, {.metrics = {"accuracy"}, .amp_level = "O2"});
  EarlyStopping stopping({.monitor = "eval_accuracy", .patience = 3, .restore_best_weights = true});
  ModelCheckpoint saver({.directory = "pets/checkpoints", .save_best_only = true});
  absl::Status trained = model.Fit(4, train_set, test_set, {}, {LossMonitor(), stopping, saver});
  if (!trained.ok()) return trained;

  auto batches = test_set.CreateDictIterator();
  for (auto& batch : batches) {
    absl::StatusOr<Tensor> logits = model.Predict(batch["image"]);
    if (!logits.ok()) return logits.status();
    const Tensor labels = argmax(*logits);
    for (const std::int32_t label : labels.data<std::int32_t>()) std::cout << model.class_names()[label] << "\n";
  }
  return batches.status();
}

}  // namespace

int main() {
  std::string folder = (fs::temp_directory_path() / "mpc_docs_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  for (const char* part : {"train", "test"}) {
    for (const char* name : {"cat", "dog"}) {
      const fs::path class_folder = fs::path(folder) / "pets" / part / name;
      fs::create_directories(class_folder);
      const fs::path picture = fs::path(MPC_PICTURES) / (*name == 'c' ? "jpeg_420.jpg" : "jpeg_grey.jpg");
      for (int i = 0; i < 20; ++i) fs::copy_file(picture, class_folder / (std::to_string(i) + ".jpg"));
    }
  }
  fs::current_path(folder);
  const absl::Status status = Run();
  fs::current_path("/");
  fs::remove_all(folder);
  std::cout << status << "\n";
  return status.ok() ? 0 : 1;
}
