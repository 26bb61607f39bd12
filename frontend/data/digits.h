// 1,797 real handwritten digits that come with mpc: "Optical Recognition of Handwritten Digits" (test set), E. Alpaydin
// and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/data/labelled_images.h"

namespace mpc::data {

enum class Resize {
  kBilinear,  ///< pixel centres at half positions, edges repeated (PyTorch's bilinear, align_corners = false)
  kNearest,
};

struct DigitsOptions {
  std::string path;              ///< digits.csv or digits.csv.gz; empty: `digits.csv.gz` in DataFolders()
  std::int64_t image_size = 32;  ///< the 8x8 digits are enlarged to this; at least 8
  Resize resize = Resize::kBilinear;
  bool one_hot = false;      ///< labels as f32 [10] in place of i32
  bool normalise = true;     ///< (pixel / 16 - 0.3053) / 0.3760: zero mean, unit deviation; else pixel / 16, in [0, 1]
  SamplingOptions sampling;  ///< which rows of the split are given
};

/// Columns "image" (f32 [1, 32, 32]) and "label" (i32 [], or f32 [10]). The rows are permuted with seed 0; the first
/// 1,437 are for training, the last 360 for testing. No shuffling, no batching. Errors (in the data set's status): the
/// file is missing (every path tried is named), truncated or damaged; the number of rows is not 1,797. Rows are errors
/// too, with their line, if they do not hold 65 integers, a pixel is beyond 0..16 or a label beyond 0..9.
Dataset Digits(Split split, const DigitsOptions& options = {});

namespace internal {

/// 65 comma-separated integers a line: 64 pixels 0..16, then the label 0..9. `origin` names the source in errors.
absl::StatusOr<LabelledImages> ParseDigits(std::string_view text, const std::string& origin);

}  // namespace internal
}  // namespace mpc::data
