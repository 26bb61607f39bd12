// interpolate, MindSpore's primitives, and the layer made of them.
#include "frontend/graph/resize_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/graph/ops.h"
#include "frontend/nn/upsample.h"
#include "tests/frontend/error_of.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const Tensor kImage = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {1, 1, 2, 2});
const Tensor kRow = Tensor::From({0.0f, 1.0f, 2.0f, 3.0f, 4.0f}, {1, 1, 1, 5});

// The values are those of torch.nn.functional.interpolate.
TEST(Interpolate, GivesWhatPyTorchGives) {
  EXPECT_THAT(interpolate(kImage, {.scale_factor = {2}}).ToFloats(),
              ElementsAre(1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4))
      << "the default is nearest";
  EXPECT_THAT(interpolate(kImage, {.scale_factor = {2}, .mode = "bilinear"}).ToFloats(),
              ElementsAre(1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4));
  EXPECT_THAT(interpolate(kImage, {.size = {1, 4}, .mode = "bilinear", .align_corners = true}).ToFloats(),
              Pointwise(FloatNear(1e-6f), {1.0f, 4.0f / 3, 5.0f / 3, 2.0f}));
  EXPECT_THAT(interpolate(kRow, {.size = {1, 3}}).ToFloats(), ElementsAre(0, 1, 3));
  EXPECT_THAT(interpolate(kRow, {.size = {1, 3}, .mode = "nearest-exact"}).ToFloats(), ElementsAre(0, 2, 4));
}

TEST(Interpolate, TakesASizeOrAFactorForBothAxesOrForEach) {
  EXPECT_EQ(interpolate(kImage, {.size = {3}}).shape(), Shape({1, 1, 3, 3}));
  EXPECT_EQ(interpolate(kImage, {.size = {3, 5}}).shape(), Shape({1, 1, 3, 5}));
  EXPECT_EQ(interpolate(kImage, {.scale_factor = {1.75}}).shape(), Shape({1, 1, 3, 3}));
  EXPECT_EQ(interpolate(kImage, {.scale_factor = {0.5, 3}}).shape(), Shape({1, 1, 1, 6}));
}

TEST(Interpolate, PrimitivesHaveMindSporesCoordinates) {
  EXPECT_THAT(ops::ResizeNearestNeighbor(kRow, {1, 3}).ToFloats(), ElementsAre(0, 1, 3));
  EXPECT_THAT(ops::ResizeNearestNeighbor(kRow, {1, 3}, true).ToFloats(), ElementsAre(0, 2, 4));
  EXPECT_THAT(ops::ResizeNearestNeighbor(kRow, {1, 3}, false, true).ToFloats(), ElementsAre(0, 2, 4));
  const Tensor pair = Tensor::From({0.0f, 4.0f}, {1, 1, 1, 2});
  EXPECT_THAT(ops::ResizeBilinear(pair, {1, 4}).ToFloats(), ElementsAre(0, 2, 4, 4));
  EXPECT_THAT(ops::ResizeBilinear(pair, {1, 5}, true).ToFloats(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ops::ResizeBilinear(pair, {1, 4}, false, true).ToFloats(), ElementsAre(0, 1, 3, 4));
}

TEST(Interpolate, ErrorsSayWhatIsAccepted) {
  const auto error = [](const InterpolateOptions& options) { return ErrorOf(interpolate(kImage, options)); };
  EXPECT_THAT(error({}),
              HasSubstr("takes a size or a scale_factor of one or two values, got size [] and scale_factor []"));
  EXPECT_THAT(error({.size = {2}, .scale_factor = {2}}), HasSubstr("got size [2] and scale_factor [2]"));
  EXPECT_THAT(error({.size = {1, 2, 3}}), HasSubstr("got size [1, 2, 3] and scale_factor []"));
  EXPECT_THAT(error({.scale_factor = {-1}}), HasSubstr("takes a scale_factor above 0, got -1"));
  EXPECT_THAT(error({.scale_factor = {0.25}}), HasSubstr("takes heights and widths of 1 to 2^30 pixels, got 1x1x0x0"));
  EXPECT_THAT(error({.size = {2}, .mode = "bicubic"}),
              HasSubstr("takes mode nearest, nearest-exact or bilinear, got \"bicubic\""));
  EXPECT_THAT(error({.size = {2}, .align_corners = false}),
              HasSubstr("takes align_corners with mode bilinear, not with nearest"));
  EXPECT_THAT(ErrorOf(interpolate(Tensor::From({1.0f}, {1}), {.size = {2}})),
              HasSubstr("takes an image [N, C, H, W], got tensor<1xf32>"));
  EXPECT_THAT(ErrorOf(ops::ResizeBilinear(kImage, {2, 2}, true, true)),
              HasSubstr("ResizeBilinear takes align_corners or half_pixel_centers, not both"));
}

TEST(Upsample, ResizesAsItsOptionsSay) {
  nn::Upsample nearest({.scale_factor = {2}});
  EXPECT_EQ(nearest(kImage).ToFloats(), interpolate(kImage, {.scale_factor = {2}}).ToFloats());
  nn::Upsample bilinear({.size = {3, 3}, .mode = "bilinear", .align_corners = true});
  EXPECT_THAT(bilinear(kImage).ToFloats(), ElementsAre(1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4));
}

}  // namespace
}  // namespace mpc
