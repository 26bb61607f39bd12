// Pictures in folders, one for each class.
#pragma once

#include <string>
#include <vector>

#include "frontend/data/dataset.h"

namespace mpc::data {

/// MindSpore's ImageFolderDataset decodes with `decode` = true; here Map(vision::Decode(), "image") does. MindSpore's
/// `class_indexing` has no counterpart, and its shuffling is Dataset's.
struct ImageFolderOptions {
  /// The files that are read, by the end of their names, whatever the case.
  std::vector<std::string> extensions = {".jpg", ".jpeg", ".png", ".webp"};
  SamplingOptions sampling;
};

/// MindSpore's ImageFolderDataset: columns "image" (u8 [bytes], a file as it is) and "label" (i32 [], the number of the
/// class). Classes are the folders of `dataset_dir` in the order of their names, which class_names() tells. Pictures
/// stand in the order of class and name. Files are read when their row is. What begins with a dot is skipped.
///
/// Errors (in the data set's status, each with a path): no such folder (NOT_FOUND). Folders of another form are
/// INVALID_ARGUMENT: no class folder or only one, or a class folder without pictures. So are a file or folder in a
/// class folder that is no picture, and a picture beside the class folders. Other files beside them are left alone.
Dataset ImageFolderDataset(const std::string& dataset_dir, const ImageFolderOptions& options = {});

}  // namespace mpc::data
