// CIFAR-10 and CIFAR-100 (A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009) from their
// published binary files, each also with `.gz`. Names and options are MindSpore's.
#pragma once

#include <string>

#include "frontend/data/dataset.h"
#include "frontend/data/labelled_images.h"

namespace mpc::data {

/// Columns "image" (u8 [32, 32, 3] in the order red, green, blue) and "label" (i32 [], 0 to 9; MindSpore's is uint32),
/// in file order. Files `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin` lie in `dataset_dir`. 3 KiB a row
/// in memory.
///
/// Errors (in the data set's status): a file is missing (every path tried is named) or empty. Its size is no multiple
/// of a record, as where it is truncated. A label beyond the classes is an error too, with its row.
Dataset Cifar10Dataset(const std::string& dataset_dir, const UsageOptions& options = {});

/// Columns "image" as above, "coarse_label" (i32 [], 0 to 19) and "fine_label" (i32 [], 0 to 99). The files are
/// `train.bin` and `test.bin`.
Dataset Cifar100Dataset(const std::string& dataset_dir, const UsageOptions& options = {});

}  // namespace mpc::data
