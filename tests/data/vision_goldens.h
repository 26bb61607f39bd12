// Pictures that tools/parity/make_vision_goldens.py wrote, and how far two are apart.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "frontend/graph/tensor.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::data {

inline std::string GoldenPath(const std::string& name) { return std::string(MPC_GOLDENS) + "/" + name; }

inline Tensor Golden(const std::string& name) {
  absl::StatusOr<Tensor> tensor = Tensor::Load(GoldenPath(name + ".npy"));
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? *tensor : Tensor();
}

/// The content of a file, as ImageFolderDataset gives it.
inline Tensor Bytes(const std::string& content) {
  const auto size = static_cast<std::int64_t>(content.size());
  return Tensor::FromBytes({DType::kU8, {size}}, content.data(), content.size());
}

struct Difference {
  int largest = 0;
  double mean = 0;
};

/// Between two pictures of u8 of one spec.
inline Difference DifferenceOf(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.spec(), b.spec());
  Difference difference;
  if (a.spec() != b.spec() || a.dtype() != DType::kU8) return {256, 256};
  for (std::size_t i = 0; i < a.bytes().size(); ++i) {
    const int distance = std::abs(int{a.bytes()[i]} - int{b.bytes()[i]});
    difference.largest = std::max(difference.largest, distance);
    difference.mean += distance / static_cast<double>(a.bytes().size());
  }
  return difference;
}

}  // namespace mpc::data
