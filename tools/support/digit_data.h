// The handwritten digits that the tools train and test on.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/data/labelled_images.h"

namespace mpc::tools {

struct DigitDataOptions {
  std::string data = "digits";  ///< digits, mnist
  std::string directory;        ///< empty: where mpc looks by itself
  std::int64_t shift = 0;       ///< training images move by up to so many pixels
  std::int64_t batch_size = 32;
  std::int64_t seed = 1;        ///< seed of row order and shifts
  bool drop_remainder = false;  ///< leaves out the rows of an epoch that fill no batch
  bool trains = true;           ///< false: the batches only show the shapes of a step, and may exceed the data
};

/// By how much training images move where nothing else is asked for: 2 pixels for digits, 0 for all
/// other data.
std::int64_t DefaultShift(const std::string& data);

/// What the test rows are where they are not the data's own test set: " rows of t10k that training left out: ...".
/// Empty where they are.
std::string TestSetNote(const std::string& data, const std::string& directory);

/// The rows of one part, in order: columns "image" (f32 [1, 32, 32]) and "label" (i32 []). Errors: the file is missing,
/// with how to name its folder, or damaged.
absl::StatusOr<data::Dataset> LoadDigitRows(const DigitDataOptions& options, data::Split split);

/// Training batches: shuffled anew in every epoch, shifted, stacked; equal options give equal epochs. Errors: those of
/// LoadDigitRows; where something is trained, a batch that is larger than the data.
absl::StatusOr<data::Dataset> LoadTrainingBatches(const DigitDataOptions& options);

}  // namespace mpc::tools
