// What the image data sets have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "frontend/data/dataset.h"

namespace mpc::data {

enum class Split { kTrain, kTest };

/// Which of the published files are read.
enum class Usage { kTrain, kTest, kAll };

/// Which files of a published data set are read, and which of their rows are given.
struct UsageOptions {
  Usage usage = Usage::kAll;  ///< kAll: the training rows, then the test rows
  SamplingOptions sampling;
};

namespace internal {

/// Grey images of one size, row-major, with a class each.
struct LabelledImages {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  ///< [images, height, width]
  std::vector<std::uint8_t> labels;  ///< [images]

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

/// "0" to "9".
std::vector<std::string> DigitNames();

/// Rows 0 .. 4n/5 - 1 of `order` for training, the rest for testing.
absl::Span<const std::int64_t> SplitRows(absl::Span<const std::int64_t> order, Split split);

/// Writes one image of `size` x `size` f32 from its pixels.
using DrawImage = std::function<void(absl::Span<const std::uint8_t> pixels, absl::Span<float> image)>;

/// Columns "image" (f32 [1, size, size]) and "label" (i32 [], or f32 [10] if `one_hot`) of the images `rows`, in
/// that order, all made at once. The classes are the ten digits.
Dataset MakeDigitDataset(const LabelledImages& images, absl::Span<const std::int64_t> rows, std::int64_t size,
                         bool one_hot, const DrawImage& draw);

}  // namespace internal
}  // namespace mpc::data
