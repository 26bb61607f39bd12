// What the image data sets have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "frontend/data/dataset.h"

namespace mpc::data {

enum class Split { kTrain, kTest };

namespace internal {

/// Grey images of one size, row-major, with a class each.
struct LabelledImages {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  ///< [images, height, width]
  std::vector<std::uint8_t> labels;  ///< [images]

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

/// Rows 0 .. 4n/5 - 1 of `order` for training, the rest for testing.
absl::Span<const std::int64_t> SplitRows(absl::Span<const std::int64_t> order, Split split);

/// Writes one image of `size` x `size` f32 from its pixels.
using DrawImage = std::function<void(absl::Span<const std::uint8_t> pixels, absl::Span<float> image)>;

/// Columns "image" (f32 [1, size, size]) and "label" (i32 [], or f32 [classes] if `one_hot`) of the images `rows`, in
/// that order, all made at once.
Dataset MakeImageDataset(const LabelledImages& images, absl::Span<const std::int64_t> rows, std::int64_t size,
                         std::int64_t classes, bool one_hot, const DrawImage& draw);

}  // namespace internal
}  // namespace mpc::data
