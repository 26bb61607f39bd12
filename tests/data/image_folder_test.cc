#include "frontend/data/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "frontend/data/vision/vision.h"
#include "tests/data/all_rows.h"
#include "tests/data/vision_goldens.h"

namespace mpc::data {
namespace {

using ::mpc::testing::ReadAll;
using ::mpc::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two classes: a picture of "ant", two of "bee".
void WritePictures(const TemporaryFolder& folder) {
  std::filesystem::create_directory(folder / "bee");
  std::filesystem::create_directory(folder / "ant");
  folder.Write("bee/2.jpg", ReadAll(GoldenPath("jpeg_420.jpg")));
  folder.Write("bee/1.PNG", ReadAll(GoldenPath("png_rgb.png")));
  folder.Write("ant/9.webp", ReadAll(GoldenPath("webp_lossless.webp")));
}

std::string ErrorOf(const TemporaryFolder& folder) {
  const absl::Status status = ImageFolderDataset(folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(ImageFolderDataset, OrdersClassesAndPicturesByName) {
  const TemporaryFolder folder;
  WritePictures(folder);
  folder.Write("bee/.DS_Store", "x");
  folder.Write("README", "x");
  const Dataset pictures = ImageFolderDataset(folder.path());
  EXPECT_THAT(pictures.class_names(), ElementsAre("ant", "bee"));
  EXPECT_THAT(pictures.column_names(), ElementsAre("image", "label"));
  const std::vector<Row> rows = AllRows(pictures);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0][1].Item<int>(), 0);
  EXPECT_EQ(rows[1][1].Item<int>(), 1);
  EXPECT_EQ(rows[2][1].Item<int>(), 1);
  EXPECT_EQ(rows[1][0].bytes(), Bytes(ReadAll(GoldenPath("png_rgb.png"))).bytes());
}

TEST(ImageFolderDataset, GivesTheRowsThatItsSamplingChooses) {
  const TemporaryFolder folder;
  WritePictures(folder);
  const Dataset shard = ImageFolderDataset(folder.path(), {.sampling = {.num_shards = 2, .shard_id = 1}});
  EXPECT_THAT(shard.class_names(), ElementsAre("ant", "bee"));
  const std::vector<Row> rows = AllRows(shard);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][0].bytes(), Bytes(ReadAll(GoldenPath("png_rgb.png"))).bytes());
  EXPECT_EQ(rows[1][1].Item<int>(), 0) << "the first row again";
}

TEST(ImageFolderDataset, GivesBatchesThroughTransforms) {
  const TemporaryFolder folder;
  WritePictures(folder);
  const Dataset batches = ImageFolderDataset(folder.path())
                              .Map(vision::Decode(), "image")
                              .Map(vision::RandomResizedCrop({8, 8}, {.seed = 1}), "image")
                              .Map(vision::RandomHorizontalFlip(0.5f, /*seed=*/1), "image")
                              .Map(vision::Rescale(1.0f / 255), "image")
                              .Map(vision::Normalize({0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}), "image")
                              .Map(vision::HWC2CHW(), "image")
                              .Map(vision::OneHot(2), "label")
                              .Batch(3);
  const std::vector<Row> rows = AllRows(batches);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0][0].spec(), (TensorSpec{DType::kF32, {3, 3, 8, 8}}));
  EXPECT_EQ(rows[0][1].spec(), (TensorSpec{DType::kF32, {3, 2}}));
}

TEST(ImageFolderDataset, ADamagedPictureIsAnErrorWithItsPath) {
  const TemporaryFolder folder;
  WritePictures(folder);
  folder.Write("bee/1.PNG", ReadAll(GoldenPath("png_rgb.png")).substr(0, 200));
  const Dataset decoded = ImageFolderDataset(folder.path()).Map(vision::Decode(), "image");
  auto iterator = *decoded.NewIterator(0);
  Row row;
  EXPECT_TRUE(*iterator->Next(&row));
  EXPECT_THAT(std::string(iterator->Next(&row).status().message()),
              AllOf(HasSubstr("row 1"), HasSubstr(folder / "bee/1.PNG: the PNG is truncated or damaged")));
}

TEST(ImageFolderDataset, AFileThatIsNoPictureIsAnErrorWithItsPathAndRow) {
  const TemporaryFolder folder;
  WritePictures(folder);
  folder.Write("bee/3.jpg", "<html>not found</html>");
  folder.Write("bee/4.jpg", ReadAll(GoldenPath("jpeg_420.jpg")).substr(0, 600));
  const Dataset decoded = ImageFolderDataset(folder.path()).Map(vision::Decode(), "image");
  const auto error = [&](std::int64_t row) {
    auto iterator = *decoded.Skip(row).NewIterator(0);
    Row unused;
    return std::string(iterator->Next(&unused).status().message());
  };
  EXPECT_THAT(error(3), AllOf(HasSubstr("row 3: "), HasSubstr(folder / "bee/3.jpg: this is no JPEG, PNG or WebP")));
  EXPECT_THAT(error(4), AllOf(HasSubstr("row 4: "), HasSubstr(folder / "bee/4.jpg: the JPEG is truncated or damaged")));
}

// A pipe would be waited for, and a link to nothing found amid training.
TEST(ImageFolderDataset, AnEntryThatIsNoFileIsAnErrorWithItsPath) {
  for (const bool is_pipe : {true, false}) {
    const TemporaryFolder folder;
    WritePictures(folder);
    const std::string path = folder / "bee/3.png";
    if (is_pipe) {
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    } else {
      std::filesystem::create_symlink("nothing", path);
    }
    EXPECT_THAT(ErrorOf(folder), HasSubstr(path + (is_pipe ? " is no file" : " leads to no file")));
  }
  const TemporaryFolder folder;
  WritePictures(folder);
  std::filesystem::create_symlink("2.jpg", folder / "bee/3.jpg");
  EXPECT_EQ(AllRows(ImageFolderDataset(folder.path())).size(), 4U) << "a link to a picture is one";
}

TEST(ImageFolderDataset, ErrorsNameWhatIsWrong) {
  EXPECT_EQ(ImageFolderDataset("/none").status().code(), absl::StatusCode::kNotFound);
  const TemporaryFolder folder;
  EXPECT_THAT(ErrorOf(folder), HasSubstr(folder.path() + " has no class folders"));
  std::filesystem::create_directory(folder / "ant");
  folder.Write("ant/1.jpg", "x");
  EXPECT_THAT(ErrorOf(folder), HasSubstr("has one class folder only, ant"));
  std::filesystem::create_directory(folder / "bee");
  EXPECT_THAT(ErrorOf(folder), HasSubstr("the class folder " + (folder / "bee") + " has no pictures"));
  folder.Write("bee/notes.txt", "x");
  EXPECT_THAT(ErrorOf(folder), HasSubstr("bee/notes.txt is no picture by its name; accepted are .jpg, .jpeg, .png"));
  std::filesystem::remove(folder / "bee/notes.txt");
  std::filesystem::create_directory(folder / "bee/more");
  EXPECT_THAT(ErrorOf(folder), HasSubstr("bee/more is a folder inside a class folder"));
  std::filesystem::remove(folder / "bee/more");
  folder.Write("bee/1.jpg", "");
  folder.Write("stray.jpg", "x");
  EXPECT_THAT(ErrorOf(folder), HasSubstr("stray.jpg is in no class folder"));
  std::filesystem::remove(folder / "stray.jpg");
  const Dataset pictures = ImageFolderDataset(folder.path());
  auto iterator = *pictures.NewIterator(0);
  Row row;
  EXPECT_TRUE(*iterator->Next(&row));
  EXPECT_THAT(std::string(iterator->Next(&row).status().message()), HasSubstr("bee/1.jpg is empty"));
}

}  // namespace
}  // namespace mpc::data
