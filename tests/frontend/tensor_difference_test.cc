#include "frontend/state/tensor_difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "frontend/graph/tensor.h"

namespace mpc {
namespace {

std::string Difference(const Tensor& a, const Tensor& b) {
  const auto difference = FindDifference(a.spec(), a.bytes(), b.bytes());
  return difference.has_value() ? difference->ToString("A", "B") : "none";
}

TEST(TensorDifference, CountsElementsAndNamesTheFirst) {
  EXPECT_EQ(Difference(Tensor::From<float>({1, 2, 3}, {3}), Tensor::From<float>({1, 2, 3}, {3})), "none");
  EXPECT_EQ(Difference(Tensor::From<float>({1, 2, 3}, {3}), Tensor::From<float>({1, 4, 5}, {3})),
            "2 of 3 elements differ, the first is element 1: 2 in A, 4 in B, 8388608 ulps apart");
  EXPECT_EQ(Difference(Tensor::From<std::int64_t>({1}, {1}), Tensor::From<std::int64_t>({-7}, {1})),
            "1 of 1 element differs, the first is element 0: 1 in A, -7 in B");
}

TEST(TensorDifference, CountsNumbersOfEveryFloatingType) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    const Tensor one = Tensor::From<float>({1}, {1}).To(dtype);
    const Tensor next = Tensor::From<double>({1 + std::ldexp(1.0, 1 - InfoOf(dtype).precision)}, {1}).To(dtype);
    EXPECT_EQ(FindDifference(one.spec(), one.bytes(), next.bytes())->ulps, 1u) << DTypeName(dtype);
    const Tensor positive = Tensor::From<float>({0.0f}, {1}).To(dtype);
    const Tensor negative = Tensor::From<float>({-0.0f}, {1}).To(dtype);
    EXPECT_EQ(FindDifference(one.spec(), positive.bytes(), negative.bytes())->ulps, 0u) << DTypeName(dtype);
  }
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Difference(Tensor::From<float>({least}, {1}), Tensor::From<float>({-least}, {1})),
            "1 of 1 element differs, the first is element 0: 1.40129846e-45 in A, -1.40129846e-45 in B, 2 ulps apart");
}

TEST(TensorDifference, NamesWhatIsNoNumberWithoutADistance) {
  EXPECT_EQ(Difference(Tensor::From<float>({1}, {1}), Tensor::From<float>({NAN}, {1})),
            "1 of 1 element differs, the first is element 0: 1 in A, nan in B");
}

}  // namespace
}  // namespace mpc
