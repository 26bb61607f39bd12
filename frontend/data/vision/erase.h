// Rectangles that are erased.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// The parameters of MindSpore's RandomErasing, with `is_hwc` and the seed, which it does not have. Its value "random"
/// is not there.
struct RandomErasingOptions {
  float prob = 0.5f;                            ///< probability, from 0 to 1
  std::array<float, 2> scale = {0.02f, 0.33f};  ///< least and largest part of the picture's area
  std::array<float, 2> ratio = {0.3f, 3.3f};    ///< least and largest width / height
  std::vector<float> value = {0};               ///< for every channel, or one for each; whole levels for u8
  std::int32_t max_attempts = 10;               ///< from 1 to 80; then the picture stays as it is
  bool is_hwc = false;  ///< true: channels are last; else first, as HWC2CHW and ToTensor leave them
  std::uint64_t seed = 0;
};

/// MindSpore's vision.RandomErasing (arXiv 1708.04896): a rectangle takes `value`. Area and ratio are drawn as
/// RandomResizedCrop draws them: the ratio is uniform in its logarithm, and a side may be the picture's. They are
/// functions of (seed, epoch, row) alone. `value` is in the numbers that the
/// picture has: 0 behind Normalize is the mean. Errors (INVALID_ARGUMENT): prob outside 0 .. 1; ranges that are not
/// positive and in order; max_attempts out of range. Another count of values is an error too. So are values that u8
/// does not hold, and what is no picture of u8 or f32. So is a picture whose channels can only be on the other side.
class RandomErasing {
 public:
  explicit RandomErasing(RandomErasingOptions options = {}) : options_(std::move(options)) {}
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  RandomErasingOptions options_;
};

}  // namespace mpc::data::vision
