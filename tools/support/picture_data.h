// Folders of pictures that the tools train and test on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/data/labelled_images.h"

namespace mpc::tools {

struct PictureDataOptions {
  std::string directory;         ///< has the folders "train" and "test", each with a folder for each class
  Shape image;                   ///< [3, height, width], which the network takes
  std::int64_t batch_size = 32;  ///< rows of a batch of training
  std::int64_t seed = 1;         ///< seed of row order
  bool drop_remainder = false;   ///< leaves out the rows of an epoch that fill no batch
};

/// The names of the classes, which the folders "train" and "test" of `directory` have both. Errors: those of
/// ImageFolderDataset; folders whose classes differ.
absl::StatusOr<std::vector<std::string>> PictureClasses(const std::string& directory);

/// The pictures of one part, in order: columns "image" (f32, of the shape that the network takes) and "label" (i32 []).
/// Pictures are resized with antialias, whatever their ratio is, and normalised with the mean and the deviation of
/// ImageNet, as published weights expect. Errors: those of ImageFolderDataset.
absl::StatusOr<data::Dataset> LoadPictureRows(const PictureDataOptions& options, data::Split split);

/// Training batches, shuffled anew in every epoch and made ahead on a thread. Errors: those of LoadPictureRows; a batch
/// that is larger than the data.
absl::StatusOr<data::Dataset> LoadPictureBatches(const PictureDataOptions& options);

}  // namespace mpc::tools
