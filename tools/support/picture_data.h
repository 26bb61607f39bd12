// Folders of pictures that the tools train and test on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/data/labelled_images.h"
#include "frontend/data/skipped_rows.h"

namespace mpc::tools {

struct PictureDataOptions {
  std::string directory;         ///< has the folders "train" and "test", each with a folder for each class
  Shape image;                   ///< [3, height, width], which the network takes
  std::vector<float> mean, std;  ///< values of each channel: the network takes (pixel - mean) / std, pixels from 0 to 1
  /// Training takes a random part of each picture, mirrored half of the time: RandomResizedCrop with antialias and its
  /// other defaults, and RandomHorizontalFlip.
  bool augment = false;
  std::int64_t workers = 0;      ///< threads that read pictures; the pictures have the same bits for any number
  std::int64_t batch_size = 32;  ///< rows of a batch of training
  std::int64_t seed = 1;         ///< seed of row order
  bool drop_remainder = false;   ///< leaves out the rows of an epoch that fill no batch
  bool trains = true;            ///< false: the batches only show the shapes of a step, and may exceed the data
  /// Where it is given, pictures that cannot be decoded are left out and counted there, each once. Every picture is
  /// then decoded once when it is loaded. Parts need counts of their own. Null: such a picture ends the epoch with an
  /// error.
  std::shared_ptr<data::SkippedRows> skipped;
};

/// The names of the classes, which the folders "train" and "test" of `directory` have both. Errors: those of
/// ImageFolderDataset; folders whose classes differ.
absl::StatusOr<std::vector<std::string>> PictureClasses(const std::string& directory);

/// The pictures of one part, in order: columns "image" (f32, of the shape that the network takes) and "label" (i32 []).
/// Pictures are resized with antialias, whatever their ratio is, and normalised as the options say. Errors: those of
/// ImageFolderDataset; no picture that can be decoded, where damaged ones are left out.
absl::StatusOr<data::Dataset> LoadPictureRows(const PictureDataOptions& options, data::Split split);

/// Training batches, shuffled anew in every epoch and made ahead on a thread. Errors: those of LoadPictureRows;
/// where something is trained, a batch that is larger than the data.
absl::StatusOr<data::Dataset> LoadPictureBatches(const PictureDataOptions& options);

}  // namespace mpc::tools
