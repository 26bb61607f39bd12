// Mirrored pictures.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "frontend/data/dataset.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision {

/// MindSpore's vision.RandomHorizontalFlip: left and right change places with probability `prob`. Whether they do is a
/// function of (seed, epoch, row) alone. MindSpore has one seed for all transforms. Pictures may have any element type.
/// Errors (INVALID_ARGUMENT): prob outside 0 .. 1; what is no picture.
class RandomHorizontalFlip {
 public:
  explicit RandomHorizontalFlip(float prob = 0.5f, std::uint64_t seed = 0) : prob_(prob), seed_(seed) {}
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  float prob_;
  std::uint64_t seed_;
};

/// MindSpore's vision.RandomVerticalFlip: as RandomHorizontalFlip, for top and bottom.
class RandomVerticalFlip {
 public:
  explicit RandomVerticalFlip(float prob = 0.5f, std::uint64_t seed = 0) : prob_(prob), seed_(seed) {}
  absl::StatusOr<Tensor> operator()(const Tensor& image, const RowPosition& position) const;

 private:
  float prob_;
  std::uint64_t seed_;
};

}  // namespace mpc::data::vision
