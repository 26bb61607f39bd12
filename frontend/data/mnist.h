// MNIST (Y. LeCun, C. Cortes, C. Burges) from its original IDX files, plain or gzip-compressed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "frontend/data/dataset.h"
#include "frontend/data/labelled_images.h"

namespace mpc::data {

struct MnistOptions {
  std::string directory;         ///< holds the IDX files; empty: DataFolders() and `mnist` in them
  std::int64_t image_size = 32;  ///< images get equal borders of pixel 0 up to this; at least the file's extent (28)
  bool one_hot = false;          ///< labels as f32 [10] in place of i32
  bool normalise = true;         ///< (pixel / 255 - 0.1307) / 0.3081: zero mean, unit deviation; else pixel / 255
  SamplingOptions sampling;      ///< which rows of the split are given
};

/// Columns "image" (f32 [1, 32, 32]) and "label" (i32 [], or f32 [10]), in file order; 4 KiB a row in memory.
///
/// Files `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte`, `t10k-labels-idx1-ubyte`, each
/// also with `.gz`. Training rows are those of train-*, test rows those of t10k-*. Where there are no train-* files the
/// first four fifths of t10k-* (rows 0..7,999 of 10,000) are for training and the rest for testing.
///
/// Errors (in the data set's status): a file is missing (every path tried is named), truncated or damaged. Errors of
/// the content: a wrong magic number, with the expected one; a size that differs from the header's. Also a label beyond
/// 0..9, with its row, and different numbers of images and labels.
Dataset Mnist(Split split, const MnistOptions& options = {});

/// Whether Mnist divides the test set because there are no train-* files. Its test rows are then a fifth of MNIST's
/// test rows, and training has seen the rest. An accuracy on them is not one on MNIST's test set.
bool MnistDividesTestSet(const MnistOptions& options = {});

/// MindSpore's MnistDataset: columns "image" (u8 [28, 28, 1]) and "label" (i32 [], 0 to 9; MindSpore's is uint32), in
/// file order. The files are those above, in `dataset_dir`; those that `usage` asks for must be there. 784 bytes a row
/// in memory. Errors (in the data set's status): those of Mnist; training and test images of different sizes.
Dataset MnistDataset(const std::string& dataset_dir, const UsageOptions& options = {});

namespace internal {

/// The images and labels of two IDX files. `origin`s name the sources in errors.
absl::StatusOr<LabelledImages> ParseIdx(absl::Span<const std::uint8_t> images, const std::string& images_origin,
                                        absl::Span<const std::uint8_t> labels, const std::string& labels_origin);

}  // namespace internal
}  // namespace mpc::data
