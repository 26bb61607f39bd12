// Derivatives of functions on tensors, by a compiled step and by differences of values.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "tests/training/training_support.h"

namespace mpc::testing {

using TensorFunction = std::function<Tensor(const Tensor&)>;

/// The sum of a function's elements, each with a weight of its own. `layer` is a Cell that the function calls.
class WeightedSum : public nn::Cell {
 public:
  MPC_CELL(WeightedSum)
  explicit WeightedSum(TensorFunction function, nn::Cell* layer = nullptr)
      : function_(std::move(function)), layer_(layer) {}
  void VisitMembers(nn::internal::MemberVisitor& visitor) override {
    if (layer_ != nullptr) visitor.Visit("layer", *layer_);
  }
  Tensor Construct(Tensor x) {
    const Tensor y = function_(x);
    return reduce_sum(y * Values(y.shape(), 9));
  }

 private:
  TensorFunction function_;
  nn::Cell* layer_;
};

/// The derivative of that sum at w + x, where w is zero.
class GradientOfSum : public nn::TrainingStep {
 public:
  MPC_CELL(GradientOfSum, w, sum)
  GradientOfSum(TensorFunction function, const Shape& shape, nn::Cell* layer = nullptr)
      : w(shape, Zeros()), sum(std::move(function), layer) {}
  Tensor Construct(Tensor x) { return ops::Backward(sum(w + x), {w})[0]; }
  Parameter w;
  WeightedSum sum;
};

/// Compares the derivative of `function` at x to central differences. Those of a sum near 1 in f32 are exact to 2^-23
/// over twice the step of 2^-6, and to the third derivative times 2^-12 / 6.
inline void ExpectGradient(const TensorFunction& function, const Tensor& x, float tolerance = 2e-3f,
                           nn::Cell* layer = nullptr) {
  constexpr float kStep = 0x1p-6f;
  GradientOfSum step(function, x.shape(), layer);
  const Tensor gradient = step(x);
  MPC_ASSERT_OK(gradient.status());
  ASSERT_EQ(gradient.shape(), x.shape());
  WeightedSum sum(function, layer);
  const std::vector<float> derivative = gradient.ToFloats(), at = x.ToFloats();
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::vector<float> above = at, below = at;
    above[i] += kStep;
    below[i] -= kStep;
    const float difference =
        sum(Tensor::From(above, x.shape())).Item<float>() - sum(Tensor::From(below, x.shape())).Item<float>();
    EXPECT_NEAR(derivative[i], difference / (2 * kStep), tolerance) << "element " << i;
  }
}

/// 0, 5, 10, ... modulo the count of elements, in steps of 1/4: distinct values, further apart than a difference's
/// step. The count is no multiple of 5.
inline Tensor DistinctValues(const Shape& shape) {
  const auto count = static_cast<std::size_t>(NumElements(shape));
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 5 % count) / 4;
  return Tensor::From(values, shape);
}

}  // namespace mpc::testing
