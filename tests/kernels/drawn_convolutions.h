// Convolutions with drawn shapes, for tests of every kernel that computes them.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/known_attributes.h"
#include "tests/op_cases/families.h"

namespace mpc::test {

using Ints = std::vector<std::int64_t>;

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}

  /// low <= result <= high.
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool OneIn(std::int64_t n) { return Between(1, n) == 1; }
  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(Between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }
  /// Whole vectors, vectors with a remainder, less than one.
  std::int64_t Channels() {
    if (OneIn(3)) return times_ * Between(1, 70);
    if (OneIn(3)) return Between(1, 15);
    return times_ * 8 * Between(1, 8) + (OneIn(2) ? Between(-3, 3) : 0);
  }
  void DrawMoreChannels() { times_ = 2; }

 private:
  std::int64_t times_ = 1;
  std::mt19937_64 engine_;
};

struct DrawnConvolution {
  std::int64_t batch, channels, height, width, out_channels, kernel_height, kernel_width, out_height, out_width;
  Attributes attributes;

  std::int64_t groups() const { return attributes.Get(attribute::kGroups); }
  std::int64_t multiply_adds() const {
    return batch * out_channels * out_height * out_width * channels / groups() * kernel_height * kernel_width;
  }
  Shape Image(std::int64_t rows, std::int64_t columns, std::int64_t depth) const {
    const bool last = attributes.Get(attribute::kDataFormat) == DataFormat::kNHWC;
    return last ? Shape{batch, rows, columns, depth} : Shape{batch, depth, rows, columns};
  }
  Shape X() const { return Image(height, width, channels); }
  Shape Weight() const { return {out_channels, channels / groups(), kernel_height, kernel_width}; }
  Shape Y() const { return Image(out_height, out_width, out_channels); }
};

/// Of `least` to `most` multiply-adds, in images `scale` times as large as most.
DrawnConvolution DrawConvolution(Draws& draws, std::int64_t least, std::int64_t most, std::int64_t scale = 1);

/// conv2d, conv2d_grad_input, conv2d_grad_weight or conv_transpose2d. The bias and the activation are those of
/// operations that have them.
op_cases::OpCase CaseOf(const std::string& op, const DrawnConvolution& shape, bool bias, const std::string& activation);

/// An operation with its shapes and windows.
std::string Describe(const op_cases::OpCase& op_case);

}  // namespace mpc::test
