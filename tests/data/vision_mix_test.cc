#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "frontend/data/vision/erase.h"
#include "frontend/data/vision/mix.h"
#include "frontend/data/vision/values.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Labels of `size` rows, each of a class of its own.
Tensor OwnClasses(std::int64_t size) {
  std::vector<float> labels(static_cast<std::size_t>(size * size));
  for (std::int64_t i = 0; i < size; ++i) labels[static_cast<std::size_t>(i * size + i)] = 1;
  return Tensor::From(labels, {size, size});
}

/// Pictures whose pixels are all different.
template <typename T>
Tensor CountedBatch(const Shape& shape) {
  std::vector<T> pixels(static_cast<std::size_t>(NumElements(shape)));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<T>(i);
  return Tensor::From(pixels, shape);
}

template <typename T>
std::vector<T> ValuesOf(const Tensor& tensor) {
  return {tensor.data<T>().begin(), tensor.data<T>().end()};
}

/// Whom a row of mixed labels of OwnClasses is mixed with, and the share that is its own.
struct Mixture {
  std::int64_t partner;
  double share;
};
Mixture MixtureOf(const Tensor& labels, std::int64_t row) {
  const std::int64_t size = labels.dim(0);
  Mixture mixture{row, 1};
  for (std::int64_t i = 0; i < size; ++i) {
    const float label = labels.data<float>()[static_cast<std::size_t>(row * size + i)];
    if (i == row) mixture.share = label;
    if (i != row && label > 0) mixture.partner = i;
  }
  return mixture;
}

template <typename Function>
std::string ErrorOf(const Function& function, const Row& row) {
  const absl::StatusOr<Row> result = function(row, RowPosition{});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

TEST(MixUpBatch, MixesPicturesAndLabelsByOneShare) {
  const Tensor images = CountedBatch<float>({5, 2, 3});
  std::set<std::int64_t> partners;
  for (std::int64_t row = 0; row < 40; ++row) {
    const absl::StatusOr<Row> mixed = vision::MixUpBatch(0.7, /*seed=*/3)({images, OwnClasses(5)}, {.row = row});
    ASSERT_TRUE(mixed.ok()) << mixed.status();
    const double share = MixtureOf((*mixed)[1], 0).share;
    partners.insert(MixtureOf((*mixed)[1], 0).partner);
    for (std::int64_t i = 0; i < 5; ++i) {
      const std::int64_t partner = MixtureOf((*mixed)[1], i).partner;
      for (std::int64_t pixel = 0; pixel < 6; ++pixel) {
        const double expected =
            share * static_cast<double>(6 * i + pixel) + (1 - share) * static_cast<double>(6 * partner + pixel);
        // The share of the label is rounded to f32, and so is the pixel: 2 * 2^-24 of at most 30.
        EXPECT_NEAR((*mixed)[0].data<float>()[static_cast<std::size_t>(6 * i + pixel)], expected, 4e-6);
      }
    }
  }
  partners.erase(0);  // where a share of 1 is drawn
  EXPECT_THAT(partners, ElementsAre(1, 2, 3, 4));
}

TEST(MixUpBatch, RoundsLevels) {
  const Tensor images = Tensor::From<std::uint8_t>({0, 255}, {2, 1, 1});
  for (std::int64_t row = 0; row < 20; ++row) {
    const Row mixed = *vision::MixUpBatch()({images, OwnClasses(2)}, {.row = row});
    const double share = MixtureOf(mixed[1], 0).share;
    EXPECT_EQ(mixed[0].data<std::uint8_t>()[1], std::lround(share * 255)) << share;
    EXPECT_EQ(mixed[0].data<std::uint8_t>()[0], std::lround((1 - share) * 255)) << share;
  }
}

// Mean, variance 1 / (4 (2 alpha + 1)) and excess kurtosis -6 / (2 alpha + 3) of Beta(alpha, alpha), each within five
// deviations of its estimate.
TEST(MixUpBatch, DrawsSharesOfTheBetaDistribution) {
  constexpr int kDraws = 4000;
  const Row batch = {CountedBatch<float>({2, 1}), OwnClasses(2)};
  for (const double alpha : {1e-308, 0.05, 0.2, 1.0, 4.0, 100.0}) {
    double sum = 0, squares = 0;
    for (std::int64_t row = 0; row < kDraws; ++row) {
      const double share = MixtureOf((*vision::MixUpBatch(alpha)(batch, {.row = row}))[1], 0).share;
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1)), kurtosis = 3 - 6 / (2 * alpha + 3);
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 5 * variance * std::sqrt((kurtosis - 1) / kDraws)) << alpha;
  }
}

TEST(MixUpBatch, IsAFunctionOfSeedEpochAndBatch) {
  const Row batch = {CountedBatch<float>({3, 4}), OwnClasses(3)};
  std::set<std::vector<float>> results;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    for (std::int64_t row = 0; row < 3; ++row) {
      const auto mixed = [&](std::uint64_t seed) {
        return ValuesOf<float>((*vision::MixUpBatch(1, seed)(batch, {epoch, row}))[0]);
      };
      EXPECT_EQ(mixed(1), mixed(1));
      results.insert(mixed(1));
      results.insert(mixed(2));
    }
  }
  EXPECT_EQ(results.size(), 12u);
}

TEST(MixUpBatch, LeavesABatchOfOnePicture) {
  const Row batch = {CountedBatch<float>({1, 2, 2}), OwnClasses(1)};
  EXPECT_THAT(ValuesOf<float>((*vision::MixUpBatch()(batch, {}))[0]), ElementsAre(0, 1, 2, 3));
  const Row pictures = {CountedBatch<float>({1, 2, 2, 1}), OwnClasses(1)};
  const vision::CutMixBatch cut(vision::ImageBatchFormat::kNHWC);
  EXPECT_THAT(ValuesOf<float>((*cut(pictures, {}))[0]), ElementsAre(0, 1, 2, 3));
}

TEST(MixUpBatch, IsAMapOfBatches) {
  std::vector<Row> rows;
  for (int i = 0; i < 6; ++i) {
    rows.push_back({Tensor::From<float>({static_cast<float>(i)}, {1, 1, 1}), Tensor::Scalar(i)});
  }
  const Dataset mixed = GeneratorDataset(rows, {"image", "label"})
                            .Map(vision::OneHot(6), "label")
                            .Batch(3)
                            .Map(vision::MixUpBatch(), {"image", "label"});
  int batches = 0;
  for (auto& batch : mixed.CreateDictIterator()) {
    ++batches;
    for (std::int64_t i = 0; i < 3; ++i) {
      double expected = 0;
      for (std::int64_t k = 0; k < 6; ++k) {
        expected += static_cast<double>(k) * batch["label"].data<float>()[static_cast<std::size_t>(6 * i + k)];
      }
      // Shares of two labels and the pixel are rounded to f32: 2 * 5 * 2^-25 + 2^-22.
      EXPECT_NEAR(batch["image"].data<float>()[static_cast<std::size_t>(i)], expected, 1e-6);
    }
  }
  EXPECT_EQ(batches, 2);
}

TEST(MixUpBatch, ErrorsSayWhatIsTaken) {
  const Tensor images = CountedBatch<float>({2, 2, 2});
  const auto error = [](double alpha, const Row& row) { return ErrorOf(vision::MixUpBatch(alpha), row); };
  EXPECT_THAT(error(0, {images, OwnClasses(2)}), HasSubstr("MixUpBatch: alpha must be finite and above 0, got 0"));
  EXPECT_THAT(error(INFINITY, {images, OwnClasses(2)}), HasSubstr("got inf"));
  EXPECT_THAT(error(NAN, {images, OwnClasses(2)}), HasSubstr("got nan"));
  EXPECT_THAT(error(1, {images}), HasSubstr("two columns, those of pictures and of labels; got 1"));
  EXPECT_THAT(error(1, {images, Tensor::From<int>({0, 1}, {2})}),
              HasSubstr("labels [N, classes] of f32, got tensor<2xi32>; vision::OneHot"));
  EXPECT_THAT(error(1, {images, OwnClasses(3)}), HasSubstr("got tensor<2x2x2xf32>; it belongs behind Batch"));
  EXPECT_THAT(error(1, {images.To(DType::kF16), OwnClasses(2)}), HasSubstr("of u8 or f32, got tensor<2x2x2xf16>"));
}

/// Checks that each picture of `mixed` is its own but for a rectangle of its partner's, whose pixels the labels count.
/// Values of `images` are all different. Returns how many rows are mixed.
int ExpectRectangles(const Tensor& images, const Row& mixed, bool is_nhwc) {
  const std::int64_t channels = images.dim(is_nhwc ? 3 : 1), height = images.dim(is_nhwc ? 1 : 2);
  const std::int64_t width = images.dim(is_nhwc ? 2 : 3);
  const auto place = [&](std::int64_t i, std::int64_t y, std::int64_t x, std::int64_t c) {
    return static_cast<std::size_t>(is_nhwc ? ((i * height + y) * width + x) * channels + c
                                            : ((i * channels + c) * height + y) * width + x);
  };
  int rows = 0;
  for (std::int64_t i = 0; i < images.dim(0); ++i) {
    const Mixture mixture = MixtureOf(mixed[1], i);
    std::set<std::int64_t> ys, xs;
    std::int64_t cut = 0;
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const bool is_own = mixed[0].data<float>()[place(i, y, x, 0)] == images.data<float>()[place(i, y, x, 0)];
        for (std::int64_t c = 0; c < channels; ++c) {
          EXPECT_EQ(mixed[0].data<float>()[place(i, y, x, c)],
                    images.data<float>()[place(is_own ? i : mixture.partner, y, x, c)]);
        }
        if (is_own) continue;
        ++cut;
        ys.insert(y);
        xs.insert(x);
      }
    }
    EXPECT_EQ(cut, static_cast<std::int64_t>(ys.size() * xs.size()));
    if (cut > 0) {
      EXPECT_EQ(*ys.rbegin() - *ys.begin() + 1, static_cast<std::int64_t>(ys.size()));
      EXPECT_EQ(*xs.rbegin() - *xs.begin() + 1, static_cast<std::int64_t>(xs.size()));
    }
    EXPECT_EQ(static_cast<float>(mixture.share),
              static_cast<float>(1 - static_cast<double>(cut) / static_cast<double>(height * width)));
    rows += cut > 0 ? 1 : 0;
  }
  return rows;
}

TEST(CutMixBatch, CutsRectanglesThatLabelsCount) {
  const Tensor last = CountedBatch<float>({4, 7, 9, 3}), first = CountedBatch<float>({4, 3, 7, 9});
  int rows = 0;
  for (std::int64_t row = 0; row < 25; ++row) {
    const vision::CutMixBatch of_last(vision::ImageBatchFormat::kNHWC, {.seed = 5});
    const vision::CutMixBatch of_first(vision::ImageBatchFormat::kNCHW, {.seed = 5});
    rows += ExpectRectangles(last, *of_last({last, OwnClasses(4)}, {.row = row}), true);
    rows += ExpectRectangles(first, *of_first({first, OwnClasses(4)}, {.row = row}), false);
  }
  // A rectangle of lambda near 1 is empty: where a side is shorter than 2 pixels, so that lambda > 1 - (2 / 7)^2 for
  // the shorter one. Binomial over 100 rows, each in two formats: mean 183.7, deviation 5.5; five deviations.
  EXPECT_NEAR(rows, 183.7, 28);
}

TEST(CutMixBatch, MixesWithItsProbability) {
  const Tensor images = CountedBatch<float>({10, 16, 16, 1});
  int rows = 0;
  for (std::int64_t row = 0; row < 100; ++row) {
    const vision::CutMixBatch cut(vision::ImageBatchFormat::kNHWC, {.alpha = 100, .prob = 0.3f});
    rows += ExpectRectangles(images, *cut({images, OwnClasses(10)}, {.row = row}), true);
  }
  // With this alpha no rectangle is empty. Binomial: mean 300, deviation 14.5; five deviations.
  EXPECT_NEAR(rows, 300, 72);
}

TEST(CutMixBatch, ErrorsSayWhatIsTaken) {
  const Row batch = {CountedBatch<float>({2, 2, 2, 1}), OwnClasses(2)};
  const auto error = [](vision::CutMixBatchOptions options, const Row& row) {
    return ErrorOf(vision::CutMixBatch(vision::ImageBatchFormat::kNHWC, options), row);
  };
  EXPECT_THAT(error({.prob = 1.5f}, batch), HasSubstr("CutMixBatch: prob must be from 0 to 1, got 1.5"));
  EXPECT_THAT(error({.alpha = -1}, batch), HasSubstr("CutMixBatch: alpha"));
  EXPECT_THAT(error({}, {CountedBatch<float>({2, 2, 2}), OwnClasses(2)}), HasSubstr("rank 4, got tensor<2x2x2xf32>"));
}

/// The pixels of a picture that RandomErasing gave the value 7.
int ErasedPixels(const Tensor& image, vision::RandomErasingOptions options, std::int64_t row) {
  const absl::StatusOr<Tensor> erased = vision::RandomErasing(std::move(options))(image, {.row = row});
  EXPECT_TRUE(erased.ok()) << erased.status();
  if (!erased.ok()) return 0;
  int count = 0;
  for (const float value : erased->To(DType::kF32).data<float>()) count += value == 7 ? 1 : 0;
  return count;
}

TEST(RandomErasing, ErasesAPartOfItsArea) {
  const Tensor image = Tensor::Zeros({40, 50}, DType::kF32);
  for (std::int64_t row = 0; row < 100; ++row) {
    const int erased = ErasedPixels(image, {.prob = 1, .scale = {0.1f, 0.2f}, .value = {7}}, row);
    // Sides are rounded to whole pixels: by half a pixel of at most 45 each.
    EXPECT_GE(erased, 200 - 45);
    EXPECT_LE(erased, 400 + 45);
    EXPECT_EQ(ErasedPixels(image, {.prob = 0, .value = {7}}, row), 0);
  }
}

TEST(RandomErasing, TakesChannelsFirstOrLast) {
  const Tensor last = Tensor::From<std::uint8_t>(std::vector<std::uint8_t>(60, 1), {4, 5, 3});
  const Tensor first = Tensor::From<std::uint8_t>(std::vector<std::uint8_t>(60, 1), {3, 4, 5});
  for (std::int64_t row = 0; row < 20; ++row) {
    const vision::RandomErasingOptions options{.prob = 1, .scale = {0.2f, 0.4f}, .value = {7, 8, 9}};
    vision::RandomErasingOptions channels_last = options;
    channels_last.is_hwc = true;
    const Tensor a = *vision::RandomErasing(channels_last)(last, {.row = row});
    const Tensor b = *vision::RandomErasing(options)(first, {.row = row});
    EXPECT_EQ(ValuesOf<std::uint8_t>(*vision::HWC2CHW()(a)), ValuesOf<std::uint8_t>(b));
    for (std::size_t pixel = 0; pixel < 20; ++pixel) {
      const int value = a.data<std::uint8_t>()[3 * pixel];
      const int step = value == 1 ? 0 : 1;
      EXPECT_EQ(a.data<std::uint8_t>()[3 * pixel + 2], value + 2 * step);
    }
  }
}

TEST(RandomErasing, ErrorsSayWhatIsTaken) {
  const auto error = [](vision::RandomErasingOptions options, const Tensor& image) {
    const absl::StatusOr<Tensor> result = vision::RandomErasing(std::move(options))(image, {});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  const Tensor image = CountedBatch<std::uint8_t>({3, 4, 4});
  EXPECT_THAT(error({}, CountedBatch<std::uint8_t>({8, 8, 3})),
              HasSubstr("tensor<8x8x3xu8> has 8 channels with is_hwc = false, and 3 with is_hwc = true"));
  EXPECT_THAT(error({.is_hwc = true}, CountedBatch<std::uint8_t>({1, 8, 8})),
              HasSubstr("has 8 channels with is_hwc = true"));
  EXPECT_THAT(error({.prob = NAN}, image), HasSubstr("RandomErasing: prob must be from 0 to 1, got nan"));
  EXPECT_THAT(error({.scale = {0, 1}}, image),
              HasSubstr("RandomErasing: scale is {least, largest}, both above 0; got"));
  EXPECT_THAT(error({.ratio = {2, 1}}, image), HasSubstr("RandomErasing: ratio"));
  EXPECT_THAT(error({.max_attempts = 81}, image),
              HasSubstr("RandomErasing: max_attempts must be from 1 to 80, got 81"));
  EXPECT_THAT(error({.value = {1, 2}}, image), HasSubstr("one for each of 3 channels; got 2"));
  EXPECT_THAT(error({.value = {0.5f}}, image), HasSubstr("whole numbers from 0 to 255, got {0.5}"));
  EXPECT_THAT(error({}, CountedBatch<float>({4})), HasSubstr("takes a picture"));
}

}  // namespace
}  // namespace mpc::data
