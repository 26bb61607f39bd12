#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "frontend/data/vision/values.h"
#include "tests/data/vision_goldens.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string MessageOf(const absl::StatusOr<Tensor>& result) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

/// [1, 2, 3]: two pixels.
Tensor TwoPixels() { return Tensor::From<std::uint8_t>({0, 51, 255, 102, 204, 153}, {1, 2, 3}); }

TEST(Rescale, ScalesAndShiftsInF32) {
  const Tensor rescaled = *vision::Rescale(1.0f / 51, -1)(TwoPixels());
  EXPECT_EQ(rescaled.spec(), (TensorSpec{DType::kF32, {1, 2, 3}}));
  EXPECT_THAT(rescaled.data<float>(), ElementsAre(-1, 0, 4, 1, 3, 2));
}

TEST(Rescale, RefusesTheZeroThatAQuotientOfIntegersIs) {
  EXPECT_THAT(MessageOf(vision::Rescale(1 / 255)(TwoPixels())), HasSubstr("In C++ 1 / 255 is 0; write 1.0f / 255"));
  EXPECT_THAT(MessageOf(vision::Rescale(2)(Tensor::Zeros({2}, DType::kI32))), HasSubstr("Rescale takes u8 or f32"));
}

TEST(Normalize, SubtractsAndDividesEachChannel) {
  const vision::Normalize normalize({0, 51, 153}, {51, 102, 51});
  EXPECT_THAT(normalize(TwoPixels())->data<float>(), ElementsAre(0, 0, 2, 2, 1.5f, 0));
  const Tensor planes = *vision::HWC2CHW()(TwoPixels());
  EXPECT_THAT(vision::Normalize({0, 51, 153}, {51, 102, 51}, /*is_hwc=*/false)(planes)->data<float>(),
              ElementsAre(0, 2, 0, 1.5f, 2, 0));
  EXPECT_THAT(vision::Normalize({51}, {51})(TwoPixels())->data<float>(), ElementsAre(-1, 0, 4, 1, 3, 2));
}

TEST(Normalize, OfPlanesAndOfPixelsGivesTheSameBits) {
  // More pixels than are taken at a time.
  const Tensor photo = Golden("photo");
  const std::vector<float> mean = {120, 110, 100}, std = {60, 50, 70};
  for (const Tensor& image : {photo, photo.To(DType::kF32)}) {
    const Tensor pixels = *vision::HWC2CHW()(*vision::Normalize(mean, std)(image));
    const Tensor planes = *vision::Normalize(mean, std, /*is_hwc=*/false)(*vision::HWC2CHW()(image));
    EXPECT_EQ(pixels.ToFloats(), planes.ToFloats());
    EXPECT_EQ(planes.ToFloats()[5], (image.ToFloats()[15] - 120) / 60);
  }
}

TEST(Normalize, AStdForUnitPixelsOverBytesSuggestsRescale) {
  const vision::Normalize normalize({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f});
  EXPECT_THAT(MessageOf(normalize(TwoPixels())), HasSubstr("put Rescale(1.0f / 255) before it"));
  EXPECT_TRUE(normalize(*vision::Rescale(1.0f / 255)(TwoPixels())).ok());
  EXPECT_TRUE(vision::Normalize({0}, {2})(TwoPixels()).ok());
}

TEST(Normalize, ErrorsSayWhatIsTaken) {
  EXPECT_THAT(MessageOf(vision::Normalize({0, 0}, {2, 2})(TwoPixels())),
              HasSubstr("mean has 2 values and std 2; a picture tensor<1x2x3xu8> has 3 channels with is_hwc = true"));
  EXPECT_THAT(MessageOf(vision::Normalize({0}, {2, 2, 2}, /*is_hwc=*/false)(TwoPixels())), HasSubstr("has 1 channels"));
  EXPECT_THAT(MessageOf(vision::Normalize({0}, {0})(TwoPixels())), HasSubstr("std must be above 0, got 0"));
}

TEST(HWC2CHW, MovesChannelsFirst) {
  const Tensor planes = *vision::HWC2CHW()(TwoPixels());
  EXPECT_EQ(planes.spec(), (TensorSpec{DType::kU8, {3, 1, 2}}));
  EXPECT_THAT(planes.data<std::uint8_t>(), ElementsAre(0, 102, 51, 204, 255, 153));
  EXPECT_THAT(vision::HWC2CHW()(Tensor::Zeros({4, 5}))->shape(), ElementsAre(4, 5));
  EXPECT_THAT(MessageOf(vision::HWC2CHW()(Tensor::Zeros({4}))), HasSubstr("HWC2CHW takes a picture"));
}

TEST(ToTensor, DividesBytesAndLeavesFloats) {
  const Tensor tensor = *vision::ToTensor()(TwoPixels());
  EXPECT_EQ(tensor.spec(), (TensorSpec{DType::kF32, {3, 1, 2}}));
  EXPECT_THAT(tensor.data<float>(), ElementsAre(0, 0.4f, 0.2f, 0.8f, 1, 0.6f));
  EXPECT_THAT(vision::ToTensor()(Tensor::Full({1, 1}, 7))->data<float>(), ElementsAre(7));
  EXPECT_EQ(vision::ToTensor(DType::kF16)(TwoPixels())->dtype(), DType::kF16);
  EXPECT_THAT(MessageOf(vision::ToTensor(DType::kI32)(TwoPixels())),
              HasSubstr("output_type must be floating, got i32"));
}

TEST(OneHot, GivesOneRowALabel) {
  EXPECT_THAT(vision::OneHot(3)(Tensor::Scalar<std::int32_t>(1))->data<float>(), ElementsAre(0, 1, 0));
  const Tensor two = *vision::OneHot(2, 0.5)(Tensor::From<std::int64_t>({1, 0}, {2}));
  EXPECT_THAT(two.shape(), ElementsAre(2, 2));
  EXPECT_THAT(two.data<float>(), ElementsAre(0.25f, 0.75f, 0.75f, 0.25f));
}

TEST(OneHot, ErrorsNameTheLabel) {
  EXPECT_THAT(MessageOf(vision::OneHot(3)(Tensor::Scalar<std::int32_t>(3))), HasSubstr("label 3 is out of range 0..2"));
  EXPECT_THAT(MessageOf(vision::OneHot(3)(Tensor::Scalar<std::int32_t>(-1))), HasSubstr("label -1"));
  EXPECT_THAT(MessageOf(vision::OneHot(3)(Tensor::Scalar(1.0f))), HasSubstr("takes integer labels, got tensor<f32>"));
  EXPECT_THAT(MessageOf(vision::OneHot(0)(Tensor::Scalar<std::int32_t>(0))), HasSubstr("num_classes"));
  EXPECT_THAT(MessageOf(vision::OneHot(3, 1.5)(Tensor::Scalar<std::int32_t>(0))), HasSubstr("smoothing_rate"));
}

TEST(TypeCast, ConvertsEveryElement) {
  EXPECT_THAT(vision::TypeCast(DType::kI32)(TwoPixels())->data<std::int32_t>(), ElementsAre(0, 51, 255, 102, 204, 153));
  EXPECT_FALSE(vision::TypeCast(DType::kI32)(Tensor()).ok());
}

}  // namespace
}  // namespace mpc::data
