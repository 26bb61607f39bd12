#include "tools/support/picture_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/image_folder.h"
#include "frontend/data/vision/vision.h"

namespace mpc::tools {
namespace {

namespace vision = data::vision;

std::string FolderOf(const std::string& directory, data::Split split) {
  return absl::StrCat(directory, split == data::Split::kTrain ? "/train" : "/test");
}

/// The files as what the network takes.
data::Dataset Prepared(const data::Dataset& files, const Shape& image) {
  const auto height = static_cast<std::int32_t>(image[1]), width = static_cast<std::int32_t>(image[2]);
  return files.Map({vision::Decode(), vision::Resize({height, width}, vision::Inter::kBilinear, {.antialias = true}),
                    vision::Rescale(1.0f / 255), vision::Normalize({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}),
                    vision::HWC2CHW()},
                   "image");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> PictureClasses(const std::string& directory) {
  const std::string train_folder = FolderOf(directory, data::Split::kTrain);
  const std::string test_folder = FolderOf(directory, data::Split::kTest);
  const data::Dataset train = data::ImageFolderDataset(train_folder);
  if (!train.status().ok()) return train.status();
  const data::Dataset test = data::ImageFolderDataset(test_folder);
  if (!test.status().ok()) return test.status();
  if (train.class_names() == test.class_names()) return train.class_names();
  return absl::InvalidArgumentError(absl::StrCat(train_folder, " has the classes ",
                                                 absl::StrJoin(train.class_names(), ", "), ", and ", test_folder,
                                                 " has ", absl::StrJoin(test.class_names(), ", ")));
}

absl::StatusOr<data::Dataset> LoadPictureRows(const PictureDataOptions& options, data::Split split) {
  data::Dataset rows = Prepared(data::ImageFolderDataset(FolderOf(options.directory, split)), options.image);
  if (!rows.status().ok()) return rows.status();
  return rows;
}

absl::StatusOr<data::Dataset> LoadPictureBatches(const PictureDataOptions& options) {
  const data::Dataset files = data::ImageFolderDataset(FolderOf(options.directory, data::Split::kTrain));
  const absl::StatusOr<std::int64_t> count = files.size();
  if (!count.ok()) return count.status();
  if (options.batch_size > *count) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch size ", options.batch_size, " is larger than the training set (", *count, " pictures)"));
  }
  // The order is drawn before pictures are decoded, so that it holds none of them.
  data::Dataset batches = Prepared(files.Shuffle(static_cast<std::uint64_t>(options.seed)), options.image)
                              .Batch(options.batch_size, options.drop_remainder)
                              .Prefetch();
  if (!batches.status().ok()) return batches.status();
  return batches;
}

}  // namespace mpc::tools
