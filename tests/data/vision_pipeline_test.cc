// Lists of transforms in one Map, with workers: the bits of a row depend on (seed, epoch, row) alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "frontend/data/image_folder.h"
#include "frontend/data/vision/vision.h"
#include "tests/data/vision_goldens.h"

namespace mpc::data {
namespace {

using ::mpc::testing::ReadAll;
using ::mpc::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kPictures = 12;

/// Two classes of six pictures, in three formats.
void WritePictures(const TemporaryFolder& folder) {
  const std::vector<std::string> goldens = {"jpeg_420.jpg", "png_rgb.png", "webp_lossy.webp"};
  for (const char* name : {"ant", "bee"}) {
    std::filesystem::create_directory(folder / name);
    for (std::int64_t i = 0; i < kPictures / 2; ++i) {
      const std::string& golden = goldens[static_cast<std::size_t>(i) % goldens.size()];
      folder.Write(std::string(name) + "/" + std::to_string(i) + "_" + golden, ReadAll(GoldenPath(golden)));
    }
  }
}

/// Every random transform, in one Map.
Dataset Pipeline(const TemporaryFolder& folder, std::int64_t workers) {
  return ImageFolderDataset(folder.path())
      .Shuffle(1)
      .Map({vision::Decode(), vision::RandomResizedCrop({24, 24}, {.seed = 1}), vision::RandomHorizontalFlip(0.5f, 1),
            vision::RandomVerticalFlip(0.5f, 1), vision::RandomRotation({30}, {.seed = 1}),
            vision::RandomColorAdjust({.brightness = {0.5f, 1.5f}, .hue = {-0.1f, 0.1f}, .seed = 1}),
            vision::TrivialAugmentWide({.seed = 1}), vision::RandAugment({.seed = 1}),
            vision::RandomCrop({16, 16}, {.seed = 1}), vision::ToTensor()},
           "image", {.num_parallel_workers = workers});
}

using RowBytes = std::vector<std::vector<std::uint8_t>>;

/// The bytes of the rows that an iterator still has.
RowBytes RestOf(DatasetIterator& iterator) {
  RowBytes rest;
  Row row;
  for (absl::StatusOr<bool> more = iterator.Next(&row); more.ok() && *more; more = iterator.Next(&row)) {
    rest.emplace_back();
    for (const Tensor& tensor : row)
      rest.back().insert(rest.back().end(), tensor.bytes().begin(), tensor.bytes().end());
  }
  return rest;
}

RowBytes RowsOf(const Dataset& dataset, std::int64_t epoch) {
  auto iterator = dataset.NewIterator(epoch);
  EXPECT_TRUE(iterator.ok()) << iterator.status();
  return iterator.ok() ? RestOf(**iterator) : RowBytes();
}

TEST(MapOfTransforms, GivesTheSameBitsWithAnyNumberOfWorkers) {
  const TemporaryFolder folder;
  WritePictures(folder);
  for (std::int64_t epoch : {0, 5}) {
    const RowBytes expected = RowsOf(Pipeline(folder, 0), epoch);
    ASSERT_EQ(expected.size(), static_cast<std::size_t>(kPictures));
    EXPECT_NE(expected[0], expected[1]);
    EXPECT_NE(expected, RowsOf(Pipeline(folder, 0), epoch + 1));
    for (std::int64_t workers : {1, 4}) {
      EXPECT_EQ(RowsOf(Pipeline(folder, workers), epoch), expected) << workers;
      EXPECT_EQ(RowsOf(Pipeline(folder, workers).Batch(5).Prefetch(), epoch),
                RowsOf(Pipeline(folder, 0).Batch(5), epoch))
          << workers;
    }
  }
}

TEST(MapOfTransforms, GoesOnWithTheSameBitsAfterAResumeAnywhere) {
  const TemporaryFolder folder;
  WritePictures(folder);
  const RowBytes expected = RowsOf(Pipeline(folder, 0), 2);
  for (std::int64_t done = 0; done <= kPictures; ++done) {
    auto iterator = *Pipeline(folder, 4).NewIterator(2);
    Row row;
    for (std::int64_t i = 0; i < done; ++i) ASSERT_TRUE(*iterator->Next(&row));
    EXPECT_EQ(RestOf(*iterator), RowBytes(expected.begin() + done, expected.end())) << done;
  }
}

TEST(MapOfTransforms, GivesWhatOneMapForEachGives) {
  const TemporaryFolder folder;
  WritePictures(folder);
  const Dataset source = ImageFolderDataset(folder.path());
  const vision::RandomResizedCrop crop({16, 16}, {.seed = 3});
  EXPECT_EQ(RowsOf(source.Map({vision::Decode(), crop}, "image", {.num_parallel_workers = 2}), 1),
            RowsOf(source.Map(vision::Decode(), "image").Map(crop, "image"), 1));
  EXPECT_EQ(RowsOf(source.Map(vision::RandomCropDecodeResize({16, 16}, {.seed = 3}), "image"), 1),
            RowsOf(source.Map({vision::Decode(), crop}, "image"), 1));
}

TEST(RandomCropDecodeResize, HasTheErrorsOfBoth) {
  const auto error = [](const std::string& content, const vision::RandomCropDecodeResize& transform) {
    return std::string(transform(Bytes(content), {}).status().message());
  };
  const std::string good = ReadAll(GoldenPath("png_rgb.png"));
  EXPECT_THAT(error("hello", vision::RandomCropDecodeResize({8})), HasSubstr("this is no JPEG, PNG or WebP"));
  EXPECT_THAT(error(good, vision::RandomCropDecodeResize({8}, {}, {.max_pixels = 9})), HasSubstr("max_pixels = 9"));
  EXPECT_THAT(error(good, vision::RandomCropDecodeResize({8}, {.scale = {2, 1}})),
              HasSubstr("scale is {least, largest}"));
}

TEST(MapOfTransforms, NamesThePictureTheRowAndTheTransformOfAnError) {
  const TemporaryFolder folder;
  WritePictures(folder);
  folder.Write("ant/1_png_rgb.png", ReadAll(GoldenPath("png_rgb.png")).substr(0, 200));
  for (std::int64_t workers : {0, 4}) {
    const Dataset dataset =
        ImageFolderDataset(folder.path())
            .Map({vision::Decode(), vision::RandomCrop({16, 16})}, "image", {.num_parallel_workers = workers});
    auto iterator = *dataset.NewIterator(0);
    Row row;
    EXPECT_TRUE(*iterator->Next(&row));
    EXPECT_THAT(std::string(iterator->Next(&row).status().message()),
                AllOf(HasSubstr("column 'image', row 1, operation 0: "), HasSubstr("ant/1_png_rgb.png: the PNG is")));
  }
}

}  // namespace
}  // namespace mpc::data
