#include "frontend/graph/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "frontend/graph/element_conversion.h"
#include "frontend/graph/tensor_node.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Print(const Tensor& tensor) {
  std::ostringstream stream;
  stream << tensor;
  return stream.str();
}

Tensor Symbolic() {
  static const int graph = 0;
  auto node = std::make_shared<internal::TensorNode>();
  node->spec = {DType::kF32, {4, 2}};
  node->graph = &graph;
  return Tensor(std::move(node));
}

TEST(Tensor, KeepsValuesShapeAndType) {
  const Tensor tensor = Tensor::From<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  ASSERT_TRUE(tensor.status().ok());
  EXPECT_TRUE(tensor.concrete());
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor.dtype(), DType::kF32);
  EXPECT_EQ(tensor.rank(), 2);
  EXPECT_EQ(tensor.dim(-1), 3);
  EXPECT_EQ(tensor.dim(7), 1);
  EXPECT_THAT(tensor.data<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_TRUE(tensor.data<std::int32_t>().empty());
}

TEST(Tensor, CountThatDiffersFromShapeIsAnErrorWithBothNumbers) {
  const Tensor tensor = Tensor::From<float>({1, 2, 3}, {2, 2});
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tensor.status().message()), HasSubstr("tensor<2x2xf32> needs 4 elements, got 3"));
  EXPECT_EQ(tensor.size(), 0);
  EXPECT_TRUE(tensor.bytes().empty());
}

TEST(Tensor, NegativeAndOverflowingShapesAreErrors) {
  EXPECT_THAT(std::string(Tensor::Zeros({2, -1}).status().message()), HasSubstr("negative extent (-1)"));
  EXPECT_THAT(std::string(Tensor::Zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}).status().message()),
              HasSubstr("more bytes than"));
  EXPECT_TRUE(Tensor::Zeros({0, std::int64_t{1} << 62, std::int64_t{1} << 62}).status().ok());
}

TEST(Tensor, FullRoundsTheValueOnceToItsType) {
  EXPECT_THAT(Tensor::Full({2}, 7).data<float>(), ElementsAre(7, 7));
  EXPECT_THAT(Tensor::Full({2}, 7, DType::kI64).data<std::int64_t>(), ElementsAre(7, 7));
  EXPECT_THAT(Tensor::Full({1}, 1, DType::kBool).data<bool>(), ElementsAre(true));
  // 1 + 2^-11 + 2^-30 lies above the tie of f16; through a rounded f32 it would be the tie itself and round down to 1.
  EXPECT_EQ(static_cast<float>(Tensor::Full({1}, 1 + 0x1p-11 + 0x1p-30, DType::kF16).data<Half>()[0]), 1 + 0x1p-10f);
}

TEST(Tensor, ItemConvertsAndRefusesOtherCounts) {
  EXPECT_EQ(Tensor::Scalar(2.5f).Item<double>(), 2.5);
  EXPECT_EQ(Tensor::Scalar<std::int32_t>(7).Item<float>(), 7.0f);
  EXPECT_EQ(Tensor::From<float>({3}, {1, 1}).Item<int>(), 3);
  const absl::StatusOr<float> two = Tensor::Zeros({2}).TryItem<float>();
  EXPECT_EQ(two.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(two.status().message()), HasSubstr("tensor<2xf32>"));
  EXPECT_EQ(Tensor().TryItem<float>().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Symbolic().TryItem<float>().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_DEATH(Tensor::Zeros({2}).Item<float>(), "one element");
}

TEST(Tensor, ConversionsRoundToNearestEvenAndSaturateIntegers) {
  const Tensor values = Tensor::From<float>({1 + 0x1p-11f, 1 + 0x3p-11f, 70000, -0.0f}, {4});
  EXPECT_THAT(values.To(DType::kF16).ToFloats(),
              ElementsAre(1, 1 + 0x2p-10f, std::numeric_limits<float>::infinity(), -0.0f));
  const Tensor wild = Tensor::From<float>({NAN, 1e30f, -1e30f, -2.7f}, {4});
  EXPECT_THAT(wild.To(DType::kI32).data<std::int32_t>(), ElementsAre(0, 2147483647, -2147483647 - 1, -2));
  EXPECT_THAT(wild.To(DType::kI64).data<std::int64_t>(),
              ElementsAre(0, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), -2));
  EXPECT_THAT(wild.To(DType::kBool).data<bool>(), ElementsAre(true, true, true, true));
  EXPECT_THAT(wild.To(DType::kU8).data<std::uint8_t>(), ElementsAre(0, 255, 0, 0));
  EXPECT_THAT(Tensor::From<std::uint8_t>({0, 128, 255}, {3}).ToFloats(), ElementsAre(0, 128, 255));
  EXPECT_THAT(Tensor::From<bool>({true, false}, {2}).ToFloats(), ElementsAre(1, 0));
  EXPECT_EQ(Symbolic().To(DType::kF16).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Tensor, NarrowingF64RoundsOnceOverTheWholeRangeOfF16) {
  // Between every two neighbours of f16: just below, at and just above the tie.
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = Half::ToFloat(bits);
    const double high = Half::ToFloat(bits + 1);
    const double tie = (low + high) / 2;
    const double values[] = {std::nextafter(tie, 0.0), tie, std::nextafter(tie, high)};
    Half rounded[3];
    internal::ConvertElements(DType::kF64, values, DType::kF16, rounded, 3);
    ASSERT_EQ(rounded[0].bits, bits);
    ASSERT_EQ(rounded[1].bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(rounded[2].bits, bits + 1);
  }
}

TEST(Tensor, ConvertsToAndFromTypesOfOneByte) {
  const Tensor values = Tensor::From<float>({1 + 0x1p-4f, 464, 465, 0x1p-9f}, {4});
  const Tensor stored = values.To(DType::kF8E4M3FN);
  EXPECT_EQ(stored.data<Float8E4M3FN>()[1].bits, 0x7e);
  EXPECT_EQ(stored.size(), 4);
  EXPECT_EQ(stored.bytes().size(), 4U);
  EXPECT_EQ(Print(stored), "Tensor(shape=[4], dtype=f8E4M3FN, [1, 448, nan, 0.001953125])");
  EXPECT_THAT(values.To(DType::kF8E5M2).ToFloats(), ElementsAre(1, 448, 448, 0x1p-9f));
  // An f64 and an integer round once: 272 + 2^-30 is just above a tie of f8E4M3FN that f32 cannot tell from it.
  EXPECT_THAT(Tensor::From<double>({272 + 0x1p-30}, {1}).To(DType::kF8E4M3FN).ToFloats(), ElementsAre(288));
  EXPECT_THAT(Tensor::From<std::int64_t>({-300}, {1}).To(DType::kF8E5M2).ToFloats(), ElementsAre(-320));
  EXPECT_THAT(stored.To(DType::kI32).data<std::int32_t>(), ElementsAre(1, 448, 0, 0));
}

TEST(Tensor, BooleanBytesBecomeZeroOrOne) {
  const std::uint8_t bytes[] = {0, 2, 255};
  EXPECT_THAT(Tensor::FromBytes({DType::kBool, {3}}, bytes, 3).bytes(), ElementsAre(0, 1, 1));
}

TEST(Tensor, PrintsNested) {
  EXPECT_EQ(Print(Tensor::From<float>({1, 2, 3, 4}, {2, 2})), "Tensor(shape=[2, 2], dtype=f32, [[1, 2], [3, 4]])");
  EXPECT_EQ(Print(Tensor::Scalar(0.1f)), "Tensor(shape=[], dtype=f32, 0.1)");
  EXPECT_EQ(Print(Tensor::From<bool>({true, false}, {2})), "Tensor(shape=[2], dtype=i1, [true, false])");
  EXPECT_EQ(Print(Tensor::Zeros({0, 3})), "Tensor(shape=[0, 3], dtype=f32, [])");
  EXPECT_EQ(Print(Tensor()), "Tensor(empty)");
  EXPECT_EQ(Print(Symbolic()), "Tensor(shape=[4, 2], dtype=f32, symbolic)");
  EXPECT_THAT(Print(Tensor::Zeros({-1})), HasSubstr("INVALID_ARGUMENT"));
}

TEST(Tensor, PrintsEdgesOfLargeTensors) {
  EXPECT_EQ(Print(Tensor::Zeros({1001}, DType::kI32)), "Tensor(shape=[1001], dtype=i32, [0, 0, 0, ..., 0, 0, 0])");
  EXPECT_THAT(Print(Tensor::Zeros({1000}, DType::kI32)), Not(HasSubstr("...")));
}

}  // namespace
}  // namespace mpc
