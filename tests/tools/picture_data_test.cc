// Folders of pictures as mpc-train reads them, and the flags that say how.
#include "tools/support/picture_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/registry.h"
#include "tests/data/all_rows.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/tools/picture_folder.h"
#include "tools/mpc-train/options.h"

namespace mpc::tools {
namespace {

using data::AllRows;
using mpc::testing::ErrorOf;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class PictureData : public ::testing::Test {
 protected:
  PictureData() {
    WritePictures(folder_.path());
    options_ = {.directory = folder_.path(),
                .image = {3, 16, 16},
                .mean = {0.0f, 0.0f, 0.0f},
                .std = {1.0f, 1.0f, 1.0f},
                .batch_size = 2,
                .seed = 3};
  }

  /// The images of an epoch of training, one by one.
  std::vector<std::vector<float>> Images(std::int64_t epoch) const {
    const absl::StatusOr<data::Dataset> batches = LoadPictureBatches(options_);
    EXPECT_TRUE(batches.ok()) << batches.status();
    auto iterator = *batches->NewIterator(epoch);
    std::vector<std::vector<float>> images;
    for (data::Row row; *iterator->Next(&row);) {
      const std::vector<float> all = row[0].ToFloats();
      const auto size = static_cast<std::ptrdiff_t>(all.size()) / row[0].dim(0);
      for (auto at = all.begin(); at != all.end(); at += size) images.emplace_back(at, at + size);
    }
    return images;
  }

  std::vector<data::Row> TestRows() const { return AllRows(*LoadPictureRows(options_, data::Split::kTest)); }

  const mpc::testing::TemporaryFolder folder_;
  PictureDataOptions options_;
};

TEST_F(PictureData, HasTheSameBitsForAnyNumberOfWorkers) {
  for (const bool augment : {false, true}) {
    options_.augment = augment;
    for (const std::int64_t epoch : {0, 1}) {
      options_.workers = 0;
      const std::vector<std::vector<float>> images = Images(epoch);
      EXPECT_THAT(images, SizeIs(6));
      for (const std::int64_t workers : {1, 4}) {
        options_.workers = workers;
        EXPECT_EQ(Images(epoch), images) << workers << " workers";
      }
    }
  }
}

TEST_F(PictureData, AugmentedTrainingSeesOtherPartsInEachEpoch) {
  const auto sorted = [this](std::int64_t epoch) {
    std::vector<std::vector<float>> images = Images(epoch);
    std::sort(images.begin(), images.end());
    return images;
  };
  const std::vector<data::Row> test = TestRows();
  EXPECT_EQ(sorted(0), sorted(1)) << "whole pictures, in another order";
  options_.augment = true;
  EXPECT_NE(sorted(0), sorted(1));
  EXPECT_EQ(TestRows()[1][0].ToFloats(), test[1][0].ToFloats()) << "the test sees whole pictures";
}

TEST_F(PictureData, IsNormalisedByChannel) {
  const std::vector<float> pixels = TestRows()[0][0].ToFloats();
  options_.mean = {0.1f, 0.2f, 0.3f};
  options_.std = {0.5f, 0.25f, 2.0f};
  const std::vector<float> normalised = TestRows()[0][0].ToFloats();
  ASSERT_THAT(normalised, SizeIs(3 * 16 * 16));
  for (std::size_t i = 0; i < normalised.size(); ++i) {
    const std::size_t channel = i / (16 * 16);
    EXPECT_NEAR(normalised[i], (pixels[i] - options_.mean[channel]) / options_.std[channel], 1e-5) << i;
  }
}

TEST_F(PictureData, LeavesDamagedPicturesOutAndCountsEachOnce) {
  Damage(folder_ / "train/bee/1.png");
  options_.skipped = std::make_shared<data::SkippedRows>();
  EXPECT_THAT(Images(0), SizeIs(5));
  EXPECT_EQ(options_.skipped->count(), 1);
  EXPECT_THAT(options_.skipped->errors(), ElementsAre(HasSubstr(folder_ / "train/bee/1.png")));
  options_.skipped = std::make_shared<data::SkippedRows>();
  const absl::StatusOr<data::Dataset> batches = LoadPictureBatches(options_);
  ASSERT_TRUE(batches.ok()) << batches.status();
  EXPECT_EQ(*batches->size(), 3);
  for (const std::int64_t epoch : {0, 1}) {
    auto iterator = *batches->NewIterator(epoch);
    for (data::Row row; *iterator->Next(&row);) EXPECT_EQ(row[0].shape()[1], 3);
  }
  EXPECT_EQ(options_.skipped->count(), 1) << "epochs read what is left";
}

TEST_F(PictureData, APartWithoutAWholePictureIsAnError) {
  Damage(folder_ / "test/ant/1.jpg");
  Damage(folder_ / "test/bee/1.png");
  options_.skipped = std::make_shared<data::SkippedRows>();
  EXPECT_THAT(ErrorOf(LoadPictureRows(options_, data::Split::kTest).status()),
              AllOf(HasSubstr("no picture of " + (folder_ / "test") + " can be decoded; the first error: "),
                    HasSubstr("test/ant/1.jpg")));
}

absl::StatusOr<CommandLine> Parse(const std::string& model, const std::vector<std::string>& flags) {
  std::vector<const char*> argv = {"mpc-train", model.c_str(), "--data=pictures", "--data-dir=f"};
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data());
}

models::PixelNormalization NormalizationOf(const std::string& model, const std::vector<std::string>& flags) {
  const absl::StatusOr<CommandLine> line = Parse(model, flags);
  EXPECT_TRUE(line.ok()) << line.status();
  if (!line.ok()) return {};
  return {line->options.mean, line->options.std};
}

TEST(PictureFlags, NormalisationIsTheNetworksWhereNoneIsGiven) {
  const models::PixelNormalization half = {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}};
  const models::PixelNormalization imagenet = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  for (const std::string& name : models::PictureNetworkNames()) {
    EXPECT_EQ(NormalizationOf(name, {}), name.rfind("vit", 0) == 0 ? half : imagenet) << name;
  }
  EXPECT_EQ(NormalizationOf("resnet50", {"--normalize=half"}), half);
  EXPECT_EQ(NormalizationOf("vit-tiny", {"--normalize=imagenet"}), imagenet);
  EXPECT_EQ(NormalizationOf("vit-tiny", {"--normalize=0.25,2"}),
            (models::PixelNormalization{{0.25f, 0.25f, 0.25f}, {2, 2, 2}}));
  EXPECT_EQ(NormalizationOf("vit-tiny", {"--normalize=1,2,3,4,5,6"}),
            (models::PixelNormalization{{1, 2, 3}, {4, 5, 6}}));
}

TEST(PictureFlags, RefuseWhatIsNoNormalisation) {
  for (const char* value : {"", "cifar", "0.5", "0.5,0", "0.5,-1", "1,2,3", "nan,1", "0,inf", "1,2,3,4,0,6"}) {
    EXPECT_THAT(ErrorOf(Parse("vit-tiny", {std::string("--normalize=") + value}).status()),
                AllOf(HasSubstr("--normalize"), HasSubstr("choose imagenet, half")))
        << value;
  }
  EXPECT_THAT(ErrorOf(Parse("vit-tiny", {"--workers=257"}).status()), HasSubstr("from 0 to 256"));
  EXPECT_THAT(ErrorOf(Parse("vit-tiny", {"--augment", "--epochs=0"}).status()),
              HasSubstr("--augment and --epochs=0 contradict each other"));
}

TEST(PictureFlags, TheHelpNamesTheNetworksOfTheRegistry) {
  const std::string help = Parse("vit-tiny", {"--help"}).value().help;
  for (const std::string& name : models::PictureNetworkNames()) EXPECT_THAT(help, HasSubstr(name));
  EXPECT_THAT(
      ErrorOf(Parse("lenet5", {}).status()),
      HasSubstr("lenet5 does not take; these do: resnet18-cifar, resnet18-imagenet, resnet50-imagenet, vit-tiny"));
}

}  // namespace
}  // namespace mpc::tools
