// Operations of TrivialAugmentWide and RandAugment beside torchvision's, and how often each is drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/data/vision/augment.h"
#include "frontend/data/vision/augment_operations.h"
#include "tests/data/vision_goldens.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using vision::Inter;
using vision::internal::AugmentOperation;
using vision::internal::RandAugmentOperations;
using vision::internal::Resampling;
using vision::internal::TrivialAugmentWideOperations;

constexpr std::int64_t kBins = 31;

Resampling Black() { return {.fill = std::vector<std::byte>(3)}; }

const AugmentOperation& Named(absl::Span<const AugmentOperation> operations, std::string_view name) {
  for (const AugmentOperation& operation : operations) {
    if (operation.name == name) return operation;
  }
  ADD_FAILURE() << name;
  return operations[0];
}

Tensor Applied(const AugmentOperation& operation, const Tensor& image, std::int64_t bin, int sign,
               const Resampling& resampling = Black()) {
  return operation.apply(image, sign * vision::internal::MagnitudeOf(operation, bin, kBins, image), resampling);
}

/// The pictures of a golden [count, height, width, 3].
std::vector<Tensor> Stack(const std::string& name) {
  const Tensor stack = Golden("augment_" + name);
  const Shape shape = {stack.dim(1), stack.dim(2), stack.dim(3)};
  const auto size = static_cast<std::size_t>(NumElements(shape));
  std::vector<Tensor> pictures;
  for (std::size_t i = 0; i < static_cast<std::size_t>(stack.dim(0)); ++i) {
    pictures.push_back(Tensor::FromBytes({DType::kU8, shape}, stack.bytes().data() + i * size, size));
  }
  return pictures;
}

/// What mpc makes where the golden of an operation has what torchvision makes.
std::vector<Tensor> OwnStack(const std::string& name) {
  const Tensor photo = Golden("photo");
  const AugmentOperation& wide = Named(TrivialAugmentWideOperations(), name);
  return {Applied(wide, photo, 26, 1), Applied(wide, photo, 14, wide.is_signed ? -1 : 1),
          Applied(Named(RandAugmentOperations(), name), photo, 28, 1)};
}

TEST(AugmentOperations, HaveTorchvisionsBits) {
  for (const char* name : {"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Posterize", "Solarize"}) {
    const std::vector<Tensor> own = OwnStack(name), expected = Stack(name);
    ASSERT_EQ(own.size(), expected.size());
    for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(DifferenceOf(own[i], expected[i]).largest, 0) << name << i;
  }
}

TEST(AugmentOperations, HaveTorchvisionsBitsOfHistograms) {
  const Tensor photo = Golden("photo");
  std::vector<std::uint8_t> dim(photo.data<std::uint8_t>().begin(), photo.data<std::uint8_t>().end());
  for (std::uint8_t& value : dim) value = static_cast<std::uint8_t>(value / 2 + 40);
  const Tensor pictures[] = {photo, Tensor::From(dim, photo.shape())};
  for (const char* name : {"AutoContrast", "Equalize"}) {
    const std::vector<Tensor> expected = Stack(name);
    const AugmentOperation& operation = Named(RandAugmentOperations(), name);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(DifferenceOf(Applied(operation, pictures[i], 0, 1), expected[i]).largest, 0) << name << i;
    }
  }
}

// Both blend the same whole numbers in f32. mpc rounds what Pillow cuts off, so it is a level higher or equal.
TEST(AugmentOperations, BlendAsTorchvisionButRounded) {
  for (const char* name : {"Brightness", "Color", "Contrast", "Sharpness"}) {
    const std::vector<Tensor> own = OwnStack(name), expected = Stack(name);
    ASSERT_EQ(own.size(), expected.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      ASSERT_EQ(own[i].spec(), expected[i].spec());
      for (std::size_t k = 0; k < own[i].bytes().size(); ++k) {
        const int above = int{own[i].bytes()[k]} - int{expected[i].bytes()[k]};
        ASSERT_TRUE(above == 0 || above == 1) << name << i << " at " << k << ": " << above;
      }
    }
  }
}

// Bilinear pixels of Pillow are cut off or rounded at another place: within a level, as those of RandomRotation.
TEST(AugmentOperations, InterpolateWithinALevel) {
  const Resampling resampling{.fill = {std::byte{9}, std::byte{8}, std::byte{7}}, .interpolation = Inter::kBilinear};
  const std::vector<Tensor> expected = Stack("bilinear");
  const char* const names[] = {"ShearX", "Rotate"};
  for (std::size_t i = 0; i < 2; ++i) {
    const AugmentOperation& operation = Named(TrivialAugmentWideOperations(), names[i]);
    EXPECT_LE(DifferenceOf(Applied(operation, Golden("photo"), 26, 1, resampling), expected[i]).largest, 1) << names[i];
  }
}

TEST(AugmentOperations, HaveMagnitudesOfEqualDistances) {
  const Tensor image = Tensor::Zeros({331, 662, 3}, DType::kU8);
  const auto magnitude = [&](absl::Span<const AugmentOperation> operations, const char* name, std::int64_t bin) {
    return vision::internal::MagnitudeOf(Named(operations, name), bin, kBins, image);
  };
  EXPECT_EQ(magnitude(TrivialAugmentWideOperations(), "TranslateX", 15), 16);
  EXPECT_EQ(magnitude(RandAugmentOperations(), "TranslateX", 15), 150);
  EXPECT_EQ(magnitude(RandAugmentOperations(), "TranslateY", 15), 75);
  EXPECT_EQ(magnitude(RandAugmentOperations(), "Solarize", 2), 238);
  EXPECT_EQ(magnitude(RandAugmentOperations(), "Posterize", 30), 4);
  EXPECT_EQ(magnitude(TrivialAugmentWideOperations(), "Posterize", 30), 2);
  EXPECT_EQ(magnitude(TrivialAugmentWideOperations(), "Rotate", 0), 0);
}

// torch rounds halves to even. With 9 bins, RandAugment's bits are 8, 7.5, 7, 6.5, ...
TEST(AugmentOperations, RoundHalfBitsToEven) {
  const Tensor white = Tensor::From<std::uint8_t>({255, 255, 255}, {1, 1, 3});
  const AugmentOperation& posterize = Named(RandAugmentOperations(), "Posterize");
  const auto level = [&](std::int64_t bin) {
    const double magnitude = vision::internal::MagnitudeOf(posterize, bin, 9, white);
    return int{posterize.apply(white, magnitude, Black()).bytes()[0]};
  };
  EXPECT_EQ(level(1), 0xff);
  EXPECT_EQ(level(3), 0xfc);
  EXPECT_EQ(level(5), 0xfc);
  EXPECT_EQ(level(7), 0xf0);
}

TEST(AugmentOperations, LeavePicturesOfOneLevelOrOnePixel) {
  const Tensor level = Tensor::From(std::vector<std::uint8_t>(36, 77), {3, 4, 3});
  const Tensor pixel = Tensor::From<std::uint8_t>({1, 100, 200}, {1, 1, 3});
  for (const char* name : {"Sharpness", "AutoContrast", "Equalize", "Identity"}) {
    for (const Tensor& image : {level, pixel}) {
      EXPECT_EQ(DifferenceOf(Applied(Named(RandAugmentOperations(), name), image, 30, 1), image).largest, 0) << name;
    }
  }
}

/// Pictures by their bytes, with a probability each.
using Frequencies = std::map<std::vector<std::uint8_t>, double>;

std::vector<std::uint8_t> BytesOf(const Tensor& image) {
  return {image.data<std::uint8_t>().begin(), image.data<std::uint8_t>().end()};
}

/// What one operation of a table makes of `image` at bins from `first` to `last`.
Frequencies FrequenciesOf(absl::Span<const AugmentOperation> operations, const Tensor& image, std::int64_t first,
                          std::int64_t last) {
  Frequencies frequencies;
  const double probability =
      0.5 / static_cast<double>((last - first + 1) * static_cast<std::int64_t>(operations.size()));
  for (const AugmentOperation& operation : operations) {
    for (std::int64_t bin = first; bin <= last; ++bin) {
      for (const int sign : {1, operation.is_signed ? -1 : 1}) {
        frequencies[BytesOf(Applied(operation, image, bin, sign))] += probability;
      }
    }
  }
  return frequencies;
}

/// Each picture comes about as often as it should: binomial, within five deviations. No other one does.
template <typename Transform>
void ExpectFrequencies(const Transform& transform, const Tensor& image, const Frequencies& expected, int draws) {
  std::map<std::vector<std::uint8_t>, int> counts;
  for (std::int64_t row = 0; row < draws; ++row) {
    const absl::StatusOr<Tensor> augmented = transform(image, {.epoch = 2, .row = row});
    ASSERT_TRUE(augmented.ok()) << augmented.status();
    const std::vector<std::uint8_t> bytes = BytesOf(*augmented);
    ASSERT_TRUE(expected.contains(bytes)) << row;
    ++counts[bytes];
  }
  for (const auto& [bytes, probability] : expected) {
    // Where five deviations reach to zero, more draws are needed to see that a picture comes about at all.
    const double mean = probability * draws, deviation = std::sqrt(mean * (1 - probability));
    ASSERT_GT(mean, 5 * deviation);
    EXPECT_NEAR(counts[bytes], mean, 5 * deviation);
  }
}

/// The middle of the photo. Its pixels are enough for Equalize to change them.
Tensor SmallPhoto() {
  const Tensor photo = Golden("photo");
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 8; y < 28; ++y) {
    const auto* const row = photo.data<std::uint8_t>().data() + (y * photo.dim(1) + 12) * 3;
    pixels.insert(pixels.end(), row, row + 20 * 3);
  }
  return Tensor::From(pixels, {20, 20, 3});
}

TEST(TrivialAugmentWide, DrawsOperationsMagnitudesAndSignsUniformly) {
  const Tensor image = SmallPhoto();
  const Frequencies expected = FrequenciesOf(TrivialAugmentWideOperations(), image, 0, kBins - 1);
  EXPECT_GT(expected.size(), 400u);
  ExpectFrequencies(vision::TrivialAugmentWide({.seed = 3}), image, expected, 40000);
}

TEST(RandAugment, DrawsOperationsAndSignsUniformly) {
  const Tensor image = SmallPhoto();
  const Frequencies expected = FrequenciesOf(RandAugmentOperations(), image, 9, 9);
  EXPECT_EQ(expected.size(), 23u);
  ExpectFrequencies(vision::RandAugment({.num_ops = 1, .seed = 3}), image, expected, 4000);
}

TEST(RandAugment, AppliesOneOperationBehindTheOther) {
  const Tensor image = SmallPhoto();
  Frequencies expected;
  for (const auto& [first, probability] : FrequenciesOf(RandAugmentOperations(), image, 9, 9)) {
    const Tensor between = Tensor::From(first, image.shape());
    for (const auto& [second, next] : FrequenciesOf(RandAugmentOperations(), between, 9, 9)) {
      expected[second] += probability * next;
    }
  }
  ExpectFrequencies(vision::RandAugment({.seed = 5}), image, expected, 40000);
}

TEST(RandAugment, LeavesThePictureWithoutOperations) {
  const Tensor image = SmallPhoto();
  EXPECT_EQ(DifferenceOf(*vision::RandAugment({.num_ops = 0})(image, {}), image).largest, 0);
}

TEST(RandAugment, FillsWhatIsOutside) {
  const Tensor image = Tensor::From<std::uint8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3});
  const Resampling resampling{.fill = {std::byte{20}, std::byte{30}, std::byte{40}}};
  const AugmentOperation& translate = Named(TrivialAugmentWideOperations(), "TranslateX");
  EXPECT_THAT(BytesOf(translate.apply(image, 1.9, resampling)), ElementsAre(20, 30, 40, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(BytesOf(translate.apply(image, -1.9, resampling)), ElementsAre(4, 5, 6, 7, 8, 9, 20, 30, 40));
  bool is_filled = false;
  for (std::int64_t row = 0; row < 100; ++row) {
    const vision::TrivialAugmentWideOptions options{.fill_value = {20, 30, 40}, .seed = 1};
    const std::vector<std::uint8_t> bytes = BytesOf(*vision::TrivialAugmentWide(options)(image, {.row = row}));
    is_filled = is_filled || bytes == std::vector<std::uint8_t>{20, 30, 40, 20, 30, 40, 20, 30, 40};
  }
  EXPECT_TRUE(is_filled);
}

std::string MessageOf(const absl::StatusOr<Tensor>& result) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

TEST(RandAugment, ErrorsSayWhatIsTaken) {
  const auto error = [](vision::RandAugmentOptions options, const Tensor& image = SmallPhoto()) {
    return MessageOf(vision::RandAugment(std::move(options))(image, {}));
  };
  EXPECT_THAT(error({.num_ops = -1}), HasSubstr("RandAugment: num_ops must be from 0 to 128, got -1"));
  EXPECT_THAT(error({.num_ops = 129}), HasSubstr("got 129"));
  EXPECT_THAT(error({.magnitude = 31}), HasSubstr("RandAugment: magnitude must be from 0 to 30, got 31"));
  EXPECT_THAT(error({.magnitude = -1}), HasSubstr("RandAugment: magnitude must be from 0 to 30, got -1"));
  EXPECT_THAT(error({.num_magnitude_bins = 1}), HasSubstr("RandAugment: num_magnitude_bins must be at least 2, got 1"));
  EXPECT_THAT(error({.fill_value = {1, 2}}), HasSubstr("RandAugment: fill_value has 2 values"));
  EXPECT_THAT(error({}, Tensor::Zeros({2, 2}, DType::kU8)), HasSubstr("RandAugment takes RGB pictures of u8, got"));
  EXPECT_THAT(error({}, Tensor::Zeros({2, 2, 3}, DType::kF32)), HasSubstr("RandAugment takes RGB pictures of u8, got"));
}

TEST(TrivialAugmentWide, ErrorsSayWhatIsTaken) {
  const auto error = [](vision::TrivialAugmentWideOptions options, const Tensor& image = SmallPhoto()) {
    return MessageOf(vision::TrivialAugmentWide(std::move(options))(image, {}));
  };
  EXPECT_THAT(error({.num_magnitude_bins = 0}),
              HasSubstr("TrivialAugmentWide: num_magnitude_bins must be at least 2, got 0"));
  EXPECT_THAT(error({.fill_value = {}}), HasSubstr("TrivialAugmentWide: fill_value has 0 values"));
  EXPECT_THAT(error({}, Tensor::Zeros({2, 2, 4}, DType::kU8)), HasSubstr("TrivialAugmentWide takes RGB pictures"));
}

}  // namespace
}  // namespace mpc::data
