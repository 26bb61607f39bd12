// Pictures in folders, one for each class.
#pragma once

#include <string>
#include <vector>

#include "frontend/data/dataset.h"

namespace mpc::data {

/// MindSpore's ImageFolderDataset decodes with `decode` = true; here Map(vision::Decode(), "image") does. MindSpore's
/// `class_indexing` has no counterpart, and its shuffling and sampling are Dataset's.
struct ImageFolderOptions {
  /// The files that are read, by the end of their names, whatever the case.
  std::vector<std::string> extensions = {".jpg", ".jpeg", ".png", ".webp"};
};

/// MindSpore's ImageFolderDataset: columns "image" (u8 [bytes], a file as it is) and "label" (i32 [], the number of the
/// class). Classes are the folders of `dataset_dir` in the order of their names, and pictures stand in the order of
/// class and name. Files are read when their row is. What begins with a dot is skipped.
///
/// Errors (in the data set's status, each with a path): no such folder (NOT_FOUND). Folders of another form are
/// INVALID_ARGUMENT: no class folder or only one, or a class folder without pictures. So are a file or folder in a
/// class folder that is no picture, and a picture beside the class folders. Other files beside them are left alone.
class ImageFolderDataset : public Dataset {
 public:
  explicit ImageFolderDataset(const std::string& dataset_dir, const ImageFolderOptions& options = {});

  /// The names of the folders: label i is class_names()[i].
  const std::vector<std::string>& class_names() const { return class_names_; }

 private:
  struct Found;
  explicit ImageFolderDataset(Found found);

  std::vector<std::string> class_names_;
};

}  // namespace mpc::data
