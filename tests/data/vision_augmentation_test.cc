#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "frontend/data/vision/augment.h"
#include "frontend/data/vision/color.h"
#include "frontend/data/vision/crop.h"
#include "frontend/data/vision/erase.h"
#include "frontend/data/vision/flip.h"
#include "frontend/data/vision/pad.h"
#include "frontend/data/vision/rotation.h"
#include "tests/data/vision_goldens.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using vision::BorderType;

/// [height, width] with the pixels 0, 1, 2, ...
Tensor Counted(std::int64_t height, std::int64_t width) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height * width));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  return Tensor::From(pixels, {height, width});
}

std::vector<int> PixelsOf(const absl::StatusOr<Tensor>& image) {
  EXPECT_TRUE(image.ok()) << image.status();
  if (!image.ok()) return {};
  return {image->data<std::uint8_t>().begin(), image->data<std::uint8_t>().end()};
}

std::string MessageOf(const absl::StatusOr<Tensor>& result) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

TEST(Pad, PutsEachKindOfBorder) {
  const Tensor row = Counted(1, 3);
  const auto padded = [&](BorderType mode) { return PixelsOf(vision::Pad({2, 0}, {9}, mode)(row)); };
  EXPECT_THAT(padded(BorderType::kConstant), ElementsAre(9, 9, 0, 1, 2, 9, 9));
  EXPECT_THAT(padded(BorderType::kEdge), ElementsAre(0, 0, 0, 1, 2, 2, 2));
  EXPECT_THAT(padded(BorderType::kReflect), ElementsAre(2, 1, 0, 1, 2, 1, 0));
  EXPECT_THAT(padded(BorderType::kSymmetric), ElementsAre(1, 0, 0, 1, 2, 2, 1));
}

TEST(Pad, TakesOneTwoOrFourValues) {
  const auto shape = [](std::vector<std::int32_t> padding) { return vision::Pad(padding)(Counted(2, 3))->shape(); };
  EXPECT_THAT(shape({1}), ElementsAre(4, 5));
  EXPECT_THAT(shape({1, 2}), ElementsAre(6, 5));
  EXPECT_THAT(shape({1, 2, 3, 4}), ElementsAre(8, 7));
  EXPECT_THAT(MessageOf(vision::Pad({1, 2, 3})(Counted(2, 3))), HasSubstr("got {1, 2, 3}"));
  EXPECT_THAT(MessageOf(vision::Pad({-1})(Counted(2, 3))), HasSubstr("got {-1}"));
  EXPECT_THAT(MessageOf(vision::Pad({1}, {1, 2})(Counted(2, 3))), HasSubstr("fill_value has 2 values"));
}

TEST(Pad, MirrorsAgainWhereTheBorderIsWiderThanThePicture) {
  const vision::Pad reflect({5, 0, 0, 0}, {0}, BorderType::kReflect);
  EXPECT_THAT(PixelsOf(reflect(Counted(1, 3))), ElementsAre(1, 0, 1, 2, 1, 0, 1, 2));
  EXPECT_THAT(PixelsOf(reflect(Counted(1, 1))), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(CenterCrop, TakesTheMiddleAndPadsWhatIsSmaller) {
  EXPECT_THAT(PixelsOf(vision::CenterCrop({2})(Counted(4, 4))), ElementsAre(5, 6, 9, 10));
  EXPECT_THAT(PixelsOf(vision::CenterCrop({1, 5})(Counted(1, 3))), ElementsAre(0, 0, 1, 2, 0));
  EXPECT_THAT(MessageOf(vision::CenterCrop({0})(Counted(1, 3))), HasSubstr("CenterCrop: size"));
}

TEST(RandomCrop, EveryPlaceComesAboutAsOften) {
  const vision::RandomCrop crop({2, 2}, {.seed = 5});
  std::vector<int> counts(9, 0);
  for (std::int64_t row = 0; row < 900; ++row) {
    const std::vector<int> pixels = PixelsOf(crop(Counted(4, 4), {.epoch = 1, .row = row}));
    ASSERT_THAT(pixels, ElementsAre(pixels[0], pixels[0] + 1, pixels[0] + 4, pixels[0] + 5));
    ++counts[static_cast<std::size_t>(pixels[0] / 4 * 3 + pixels[0] % 4)];
  }
  // Binomial: mean 100, deviation 9.4; five deviations.
  for (const int count : counts) EXPECT_NEAR(count, 100, 47);
}

TEST(RandomCrop, PadsAsAskedAndRefusesWhatIsSmaller) {
  const Tensor image = Counted(2, 2);
  EXPECT_THAT(MessageOf(vision::RandomCrop({3, 3})(image, {})), HasSubstr("is smaller than size 3 x 3"));
  EXPECT_THAT(vision::RandomCrop({3, 3}, {.pad_if_needed = true})(image, {})->shape(), ElementsAre(3, 3));
  EXPECT_THAT(vision::RandomCrop({4, 4}, {.padding = {1}})(image, {})->shape(), ElementsAre(4, 4));
}

TEST(RandomResizedCrop, PartsHaveTheAreasAndRatiosAskedFor) {
  // The whole picture, whatever is drawn, where area and ratio are one.
  const Tensor photo = Golden("photo");
  const vision::RandomResizedCrop whole({31, 45}, {.scale = {1, 1}, .ratio = {45.0f / 31, 45.0f / 31}});
  EXPECT_EQ(DifferenceOf(*whole(photo, {.row = 3}), photo).largest, 0);
  // An area beyond the picture's: the largest part in the middle whose ratio is allowed.
  const vision::RandomResizedCrop square({2, 2}, {.scale = {4, 4}, .ratio = {1, 1}});
  EXPECT_THAT(PixelsOf(square(Counted(2, 4), {})), ElementsAre(1, 2, 5, 6));
  const vision::RandomResizedCrop small({8, 8}, {.seed = 2});
  EXPECT_THAT(small(photo, {})->shape(), ElementsAre(8, 8, 3));
}

TEST(RandomResizedCrop, ErrorsSayWhatIsTaken) {
  const auto error = [](vision::RandomResizedCropOptions options) {
    return MessageOf(vision::RandomResizedCrop({2, 2}, options)(Counted(4, 4), {}));
  };
  EXPECT_THAT(error({.scale = {0, 1}}), HasSubstr("scale is {least, largest}, both above 0; got {0, 1}"));
  EXPECT_THAT(error({.ratio = {2, 1}}), HasSubstr("ratio is {least, largest}, both above 0; got {2, 1}"));
  EXPECT_THAT(error({.max_attempts = 81}), HasSubstr("max_attempts must be from 1 to 80, got 81"));
}

TEST(RandomFlips, MirrorTheirAxisWithTheirProbability) {
  const Tensor image = Counted(2, 3);
  EXPECT_THAT(PixelsOf(vision::RandomHorizontalFlip(1)(image, {})), ElementsAre(2, 1, 0, 5, 4, 3));
  EXPECT_THAT(PixelsOf(vision::RandomVerticalFlip(1)(image, {})), ElementsAre(3, 4, 5, 0, 1, 2));
  EXPECT_THAT(PixelsOf(vision::RandomHorizontalFlip(0)(image, {})), ElementsAre(0, 1, 2, 3, 4, 5));
  const Tensor pair = Tensor::From<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3});
  EXPECT_THAT(vision::RandomHorizontalFlip(1)(pair, {})->data<float>(), ElementsAre(4, 5, 6, 1, 2, 3));
  const Tensor colours = Tensor::From<std::uint8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 2, 3});
  EXPECT_THAT(PixelsOf(vision::RandomHorizontalFlip(1)(colours, {})),
              ElementsAre(4, 5, 6, 1, 2, 3, 10, 11, 12, 7, 8, 9));
  int flips = 0;
  for (std::int64_t row = 0; row < 1000; ++row) {
    flips += PixelsOf(vision::RandomHorizontalFlip(0.3f, 7)(image, {.row = row}))[0] == 2;
  }
  // Binomial: mean 300, deviation 14.5; five deviations.
  EXPECT_NEAR(flips, 300, 72);
  EXPECT_THAT(MessageOf(vision::RandomVerticalFlip(1.5f)(image, {})), HasSubstr("prob must be from 0 to 1, got 1.5"));
  EXPECT_THAT(MessageOf(vision::RandomHorizontalFlip(NAN)(image, {})), HasSubstr("RandomHorizontalFlip: prob"));
}

Tensor Adjusted(const std::vector<std::uint8_t>& pixels, vision::RandomColorAdjustOptions options) {
  const auto count = static_cast<std::int64_t>(pixels.size() / 3);
  return *vision::RandomColorAdjust(options)(Tensor::From(pixels, {1, count, 3}), {});
}

TEST(RandomColorAdjust, ChangesBrightnessContrastAndSaturation) {
  const std::vector<std::uint8_t> pixels = {100, 50, 200, 20, 20, 20};
  EXPECT_THAT(Adjusted(pixels, {}).data<std::uint8_t>(), ElementsAre(100, 50, 200, 20, 20, 20));
  EXPECT_THAT(Adjusted(pixels, {.brightness = {1.5f, 1.5f}}).data<std::uint8_t>(),
              ElementsAre(150, 75, 255, 30, 30, 30));
  // Greys of ITU-R 601: 82 and 20, of which the mean is 51.
  EXPECT_THAT(Adjusted(pixels, {.contrast = {0, 0}}).data<std::uint8_t>(), ElementsAre(51, 51, 51, 51, 51, 51));
  EXPECT_THAT(Adjusted(pixels, {.saturation = {0, 0}}).data<std::uint8_t>(), ElementsAre(82, 82, 82, 20, 20, 20));
  EXPECT_THAT(Adjusted(pixels, {.saturation = {2, 2}}).data<std::uint8_t>(), ElementsAre(118, 18, 255, 20, 20, 20));
}

TEST(RandomColorAdjust, TurnsHuesAroundTheCircle) {
  const std::vector<std::uint8_t> pixels = {200, 100, 40, 7, 7, 7, 255, 0, 0};
  const float third = 1.0f / 3;
  EXPECT_THAT(Adjusted(pixels, {.hue = {third, third}}).data<std::uint8_t>(),
              ElementsAre(40, 200, 100, 7, 7, 7, 0, 255, 0));
  EXPECT_THAT(Adjusted(pixels, {.hue = {-third, -third}}).data<std::uint8_t>(),
              ElementsAre(100, 40, 200, 7, 7, 7, 0, 0, 255));
  EXPECT_THAT(Adjusted({255, 0, 0}, {.hue = {0.5f, 0.5f}}).data<std::uint8_t>(), ElementsAre(0, 255, 255));
}

TEST(RandomColorAdjust, ErrorsSayWhatIsTaken) {
  const auto error = [](vision::RandomColorAdjustOptions options) {
    return MessageOf(vision::RandomColorAdjust(options)(Tensor::Zeros({1, 1, 3}, DType::kU8), {}));
  };
  EXPECT_THAT(error({.brightness = {-1, 1}}), HasSubstr("brightness is {least, largest}, at least 0; got {-1, 1}"));
  EXPECT_THAT(error({.contrast = {1, INFINITY}}),
              HasSubstr("contrast is {least, largest}, at least 0 and finite; got"));
  EXPECT_THAT(error({.saturation = {INFINITY, INFINITY}}), HasSubstr("saturation is {least, largest}"));
  EXPECT_THAT(error({.hue = {0, 0.6f}}), HasSubstr("hue is {least, largest}, at least -0.5 and at most 0.5"));
  EXPECT_THAT(MessageOf(vision::RandomColorAdjust()(Counted(2, 2), {})), HasSubstr("takes RGB pictures of u8"));
}

TEST(RandomGrayscale, MakesThreeEqualChannels) {
  const Tensor image = Tensor::From<std::uint8_t>({100, 50, 200, 20, 20, 20, 255, 0, 0}, {1, 3, 3});
  EXPECT_THAT(PixelsOf(vision::RandomGrayscale(1)(image, {})), ElementsAre(82, 82, 82, 20, 20, 20, 76, 76, 76));
  EXPECT_EQ(PixelsOf(vision::RandomGrayscale(0)(image, {})), PixelsOf(image));
  EXPECT_THAT(MessageOf(vision::RandomGrayscale(2)(image, {})), HasSubstr("RandomGrayscale: prob must be from 0 to 1"));
  EXPECT_THAT(MessageOf(vision::RandomGrayscale()(Counted(2, 2), {})), HasSubstr("RandomGrayscale takes RGB pictures"));
}

// Each transform gives the same again at the same (seed, epoch, row), and mostly another result elsewhere.
TEST(RandomTransforms, AreFunctionsOfSeedEpochAndRowAlone) {
  const Tensor photo = Golden("photo");
  const auto transforms = [](std::uint64_t seed) {
    return std::vector<PositionMapFunction>{
        vision::RandomCrop({16, 16}, {.seed = seed}),
        vision::RandomResizedCrop({16, 16}, {.seed = seed}),
        vision::RandomColorAdjust({.brightness = {0.5f, 1.5f}, .hue = {-0.5f, 0.5f}, .seed = seed}),
        vision::RandomRotation({45}, {.seed = seed}),
        vision::RandomErasing({.prob = 1, .is_hwc = true, .seed = seed}),
        vision::TrivialAugmentWide({.seed = seed}),
        vision::RandAugment({.num_ops = 4, .seed = seed}),
    };
  };
  for (std::size_t i = 0; i < transforms(0).size(); ++i) {
    const PositionMapFunction transform = transforms(0)[i];
    std::set<std::vector<int>> results;
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      for (std::int64_t row = 0; row < 4; ++row) {
        const std::vector<int> first = PixelsOf(transform(photo, {epoch, row}));
        EXPECT_EQ(PixelsOf(transforms(0)[i](photo, {epoch, row})), first) << i;
        results.insert(first);
        results.insert(PixelsOf(transforms(1)[i](photo, {epoch, row})));
      }
    }
    EXPECT_GE(results.size(), 14u) << i;
  }
}

}  // namespace
}  // namespace mpc::data
