// Turned pictures.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/data/vision/resize.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// The parameters of MindSpore's RandomRotation, and the seed, which MindSpore has once for all transforms.
struct RandomRotationOptions {
  Inter resample = Inter::kNearest;
  bool expand = false;        ///< the result is as large as the whole turned picture; `center` must then be empty
  std::vector<float> center;  ///< {x, y} in pixels from the upper left corner; empty: the middle
  std::vector<std::uint8_t> fill_value = {0, 0, 0};  ///< around the picture; {0, 0, 0} fits any number of channels
  std::uint64_t seed = 0;
};

/// MindSpore's vision.RandomRotation for u8 and f32: counter-clockwise by an angle drawn uniformly from `degrees`,
/// {least, largest}, or one value d for {-d, d}. The angle is a function of (seed, epoch, row) alone. Places are
/// Pillow's: pixels have their centres at half positions. Errors (INVALID_ARGUMENT): counts of values other than these;
/// degrees out of order; a center with `expand`; what is no picture.
class RandomRotation {
 public:
  explicit RandomRotation(std::vector<float> degrees, RandomRotationOptions options = {});
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  absl::Status CheckOptions() const;

  std::vector<float> degrees_;
  RandomRotationOptions options_;
};

}  // namespace mpc::data::vision
