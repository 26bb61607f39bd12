#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/resize.h"
#include "frontend/data/vision/rotation.h"
#include "tests/data/vision_goldens.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using vision::Inter;
using vision::RandomRotation;
using vision::Resize;

const std::map<std::string, Inter> kInterpolations = {
    {"nearest", Inter::kNearest}, {"bilinear", Inter::kBilinear}, {"bicubic", Inter::kBicubic}};
const std::map<std::string, std::vector<std::int32_t>> kSizes = {
    {"up", {40, 56}}, {"down", {13, 10}}, {"mixed", {40, 17}}};

/// Expects the pictures of a library, or such that differ by at most `levels` where pixels are mixed.
void ExpectGoldens(const std::string& library, bool antialias, int levels) {
  const Tensor photo = Golden("photo");
  for (const auto& [name, interpolation] : kInterpolations) {
    for (const auto& [size_name, size] : kSizes) {
      const std::string golden = absl::StrCat("resize_", library, "_", name, "_", size_name);
      const absl::StatusOr<Tensor> resized = Resize(size, interpolation, {.antialias = antialias})(photo);
      ASSERT_TRUE(resized.ok()) << resized.status();
      EXPECT_LE(DifferenceOf(*resized, Golden(golden)).largest, name == "nearest" ? 0 : levels) << golden;
    }
  }
}

// OpenCV rounds weights and sums in another order.
TEST(Resize, IsOpenCvsWithinALevel) { ExpectGoldens("opencv", /*antialias=*/false, /*levels=*/1); }

TEST(Resize, WithAntialiasHasPillowsBits) { ExpectGoldens("pillow", /*antialias=*/true, /*levels=*/0); }

TEST(Resize, NearestPlacesRoundAsTheLibrariesDo) {
  std::vector<std::uint8_t> ramp(106);
  std::iota(ramp.begin(), ramp.end(), std::uint8_t{0});
  const auto place = [&ramp](std::int32_t from, std::int32_t to, std::size_t at, bool antialias) {
    const Tensor row = Tensor::From(std::vector<std::uint8_t>(ramp.begin(), ramp.begin() + from), {1, from});
    return int{(*Resize({1, to}, Inter::kNearest, {.antialias = antialias})(row)).data<std::uint8_t>()[at]};
  };
  // Each lies on the border of two places of the source, or below it by a last bit.
  EXPECT_EQ(place(102, 56, 28, false), 50);
  EXPECT_EQ(place(60, 88, 22, false), 15);
  EXPECT_EQ(place(60, 88, 44, false), 30);
  EXPECT_EQ(place(106, 185, 92, true), 52);
  EXPECT_EQ(place(64, 96, 4, true), 2);
  EXPECT_EQ(place(20, 126, 94, true), 14);
}

TEST(Resize, OneValueIsTheShorterEdge) {
  const Tensor photo = Golden("photo");  // 31 x 45
  EXPECT_THAT((*Resize({16})(photo)).shape(), ElementsAre(16, 23, 3));
  const Tensor upright = Tensor::Zeros({45, 31, 3}, DType::kU8);
  EXPECT_THAT((*Resize({62})(upright)).shape(), ElementsAre(90, 62, 3));
}

TEST(Resize, FloatsAreNotRoundedAndGreyPicturesStayGrey) {
  const Tensor ramp = Tensor::From<float>({0, 1, 0, 1}, {2, 2});
  // Places -1/4 (the edge), 1/4, 3/4 and 5/4 (the edge) of the two columns.
  EXPECT_THAT((*Resize({1, 4})(ramp)).data<float>(), ElementsAre(0, 0.25f, 0.75f, 1));
  EXPECT_THAT((*Resize({1, 4})(ramp)).shape(), ElementsAre(1, 4));
}

TEST(Resize, GivesEachChannelTheBitsThatItHasAlone) {
  const Tensor photo = Golden("photo");
  for (const Tensor& image : {photo, photo.To(DType::kF32)}) {
    for (const bool antialias : {false, true}) {
      const Tensor resized = *Resize({40, 17}, Inter::kBicubic, {.antialias = antialias})(image);
      const std::vector<float> values = resized.ToFloats(), pixels = image.ToFloats();
      for (std::size_t c = 0; c < 3; ++c) {
        std::vector<float> channel, expected;
        for (std::size_t i = c; i < pixels.size(); i += 3) channel.push_back(pixels[i]);
        for (std::size_t i = c; i < values.size(); i += 3) expected.push_back(values[i]);
        const Tensor alone = Tensor::From(channel, {image.dim(0), image.dim(1)}).To(image.dtype());
        EXPECT_EQ((*Resize({40, 17}, Inter::kBicubic, {.antialias = antialias})(alone)).ToFloats(), expected);
      }
    }
  }
}

TEST(Resize, OfTheSameSizeIsThePicture) {
  const Tensor photo = Golden("photo");
  for (const auto& [name, interpolation] : kInterpolations) {
    for (const bool antialias : {false, true}) {
      const Tensor same = *Resize({31, 45}, interpolation, {.antialias = antialias})(photo);
      EXPECT_EQ(DifferenceOf(same, photo).largest, 0) << name << " " << antialias;
    }
  }
}

TEST(Resize, AnExtentOfOneResizes) {
  const Tensor pixel = Tensor::From<std::uint8_t>({7}, {1, 1, 1});
  for (const auto& [name, interpolation] : kInterpolations) {
    for (const bool antialias : {false, true}) {
      const Tensor large = *Resize({2, 2}, interpolation, {.antialias = antialias})(pixel);
      EXPECT_THAT(large.data<std::uint8_t>(), ElementsAre(7, 7, 7, 7)) << name << " " << antialias;
    }
  }
}

TEST(Resize, ErrorsSayWhatIsTaken) {
  const Tensor photo = Golden("photo");
  const auto error = [](const Resize& resize, const Tensor& image) {
    const absl::Status status = resize(image).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error(Resize({0, 4}), photo), HasSubstr("each at least 1; got {0, 4}"));
  EXPECT_THAT(error(Resize({1, 2, 3}), photo), HasSubstr("got {1, 2, 3}"));
  const Tensor narrow = Tensor::Zeros({1, 60000, 3}, DType::kU8);
  EXPECT_EQ(error(Resize({100000}), narrow),
            "Resize: 60000 x 1 pixels become 6000000000 x 100000, more than max_pixels = 178956970");
  constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();
  for (const Resize& resize : {Resize({kLargest}), Resize({kLargest, kLargest})}) {
    EXPECT_THAT(error(resize, narrow), HasSubstr("more than max_pixels"));
  }
  EXPECT_TRUE(Resize({4, 5}, Inter::kBilinear, {.max_pixels = 20})(photo).ok());
  EXPECT_THAT(error(Resize({3, 7}, Inter::kBilinear, {.max_pixels = 20}), photo), HasSubstr("max_pixels = 20"));
  EXPECT_THAT(error(Resize({4}), Tensor::Zeros({9}, DType::kU8)), HasSubstr("decode it first, with vision::Decode"));
  EXPECT_THAT(error(Resize({4}), Tensor::Zeros({4, 0, 3}, DType::kU8)), HasSubstr("Resize takes a picture"));
  EXPECT_THAT(error(Resize({4}), Tensor::Zeros({4, 4, 3}, DType::kI32)), HasSubstr("pixels of u8 or f32"));
}

Tensor Rotated(float degrees, vision::RandomRotationOptions options) {
  return *RandomRotation({degrees, degrees}, std::move(options))(Golden("photo"), {});
}

TEST(RandomRotation, IsPillowsWithinALevel) {
  EXPECT_EQ(DifferenceOf(Rotated(30, {}), Golden("rotate_nearest")).largest, 0);
  EXPECT_LE(
      DifferenceOf(Rotated(-17, {.resample = Inter::kBilinear, .fill_value = {9, 8, 7}}), Golden("rotate_bilinear"))
          .largest,
      1);
  EXPECT_LE(
      DifferenceOf(Rotated(30, {.resample = Inter::kBilinear, .expand = true}), Golden("rotate_expanded")).largest, 1);
  EXPECT_EQ(DifferenceOf(Rotated(30, {.center = {5, 9}}), Golden("rotate_centered")).largest, 0);
  EXPECT_EQ(DifferenceOf(Rotated(90, {.expand = true}), Golden("rotate_right")).largest, 0);
}

TEST(RandomRotation, AFullTurnIsThePicture) {
  for (const auto& [name, interpolation] : kInterpolations) {
    EXPECT_EQ(DifferenceOf(Rotated(360, {.resample = interpolation}), Golden("photo")).largest, 0) << name;
  }
}

TEST(RandomRotation, ErrorsSayWhatIsTaken) {
  const auto error = [](const RandomRotation& rotation) {
    return std::string(rotation(Golden("photo"), {}).status().message());
  };
  EXPECT_THAT(error(RandomRotation({-1})),
              HasSubstr("degrees is {least, largest}, or one value of at least 0; got {-1}"));
  EXPECT_THAT(error(RandomRotation({5, 4})), HasSubstr("got {5, 4}"));
  EXPECT_THAT(error(RandomRotation({5}, {.expand = true, .center = {1, 2}})), HasSubstr("center is {x, y}, or empty"));
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    EXPECT_THAT(error(RandomRotation({5}, {.center = {bad, 0}})), HasSubstr("accepted are finite numbers"));
    EXPECT_THAT(error(RandomRotation({5}, {.center = {0, bad}})), HasSubstr("RandomRotation: center is {0, "));
  }
  EXPECT_THAT(error(RandomRotation({5}, {.fill_value = {1, 2}})), HasSubstr("fill_value has 2 values"));
}

}  // namespace
}  // namespace mpc::data
