// Borders around pictures.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// What stands in a border: mindspore::dataset::BorderType.
enum class BorderType {
  kConstant,   ///< the fill value
  kEdge,       ///< the pixel at the edge
  kReflect,    ///< the picture mirrored at its edge, which is not repeated: c b | a b c
  kSymmetric,  ///< the picture mirrored at its edge, which is repeated: b a | a b c
};

/// MindSpore's vision.Pad for u8 and f32. `padding` is one value for every side, {left and right, top and bottom}, or
/// {left, top, right, bottom}. `fill_value` is one value for every channel, or one for each. Errors
/// (INVALID_ARGUMENT): other counts, negative padding, what is no picture.
class Pad {
 public:
  explicit Pad(std::vector<std::int32_t> padding, std::vector<std::uint8_t> fill_value = {0},
               BorderType padding_mode = BorderType::kConstant);
  absl::StatusOr<Tensor> operator()(const Tensor& image) const;

 private:
  std::vector<std::int32_t> padding_;
  std::vector<std::uint8_t> fill_value_;
  BorderType padding_mode_;
};

}  // namespace mpc::data::vision
