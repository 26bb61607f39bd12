// CIFAR-10 and CIFAR-100 (A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009) from their
// published binary files, each also with `.gz`. Names and options are MindSpore's.
#pragma once

#include <string>

#include "frontend/data/dataset.h"
#include "frontend/data/sampler.h"

namespace mpc::data {

/// Which of the published files are read.
enum class Usage { kTrain, kTest, kAll };

struct CifarOptions {
  Usage usage = Usage::kAll;  ///< kAll: the training rows, then the test rows
  SamplingOptions sampling;
};

/// Columns "image" (f32 [32, 32, 3], pixels 0 to 255 in the order red, green, blue) and "label" (i32 [], 0 to 9), in
/// file order. Files `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin` lie in `dataset_dir`. MindSpore's
/// image is uint8 and its label uint32. 3 KiB a row in memory.
///
/// Errors (in the data set's status): a file is missing (every path tried is named) or empty. Its size is no multiple
/// of a record, as where it is truncated. A label beyond the classes is an error too, with its row.
Dataset Cifar10Dataset(const std::string& dataset_dir, const CifarOptions& options = {});

/// Columns "image" as above, "coarse_label" (i32 [], 0 to 19) and "fine_label" (i32 [], 0 to 99). The files are
/// `train.bin` and `test.bin`.
Dataset Cifar100Dataset(const std::string& dataset_dir, const CifarOptions& options = {});

}  // namespace mpc::data
