#include "frontend/data/mnist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/data/all_rows.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::data {
namespace {

using ::mpc::testing::TemporaryFolder;
using ::testing::HasSubstr;

std::string BigEndian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

/// `count` images of 2x3; all pixels of image i are i.
std::string Images(std::uint32_t count) {
  std::string file = BigEndian(0x803) + BigEndian(count) + BigEndian(2) + BigEndian(3);
  for (std::uint32_t i = 0; i < count; ++i) file.append(6, static_cast<char>(i));
  return file;
}

/// Label i is i % 10.
std::string Labels(std::uint32_t count) {
  std::string file = BigEndian(0x801) + BigEndian(count);
  for (std::uint32_t i = 0; i < count; ++i) file.push_back(static_cast<char>(i % 10));
  return file;
}

void WriteGzip(const std::string& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())), static_cast<int>(content.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

std::string ErrorOf(const std::string& images, const std::string& labels) {
  const TemporaryFolder folder;
  folder.Write("t10k-images-idx3-ubyte", images);
  folder.Write("t10k-labels-idx1-ubyte", labels);
  const Dataset mnist = Mnist(Split::kTest, {.directory = folder.path()});
  EXPECT_EQ(mnist.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(mnist.status().message());
}

TEST(Mnist, WithoutTrainingFilesSplitsTheTestFiles) {
  const TemporaryFolder folder;
  folder.Write("t10k-images-idx3-ubyte", Images(20));
  folder.Write("t10k-labels-idx1-ubyte", Labels(20));
  const MnistOptions options{.directory = folder.path(), .image_size = 4, .normalise = false};
  const std::vector<Row> train = AllRows(Mnist(Split::kTrain, options));
  const std::vector<Row> test = AllRows(Mnist(Split::kTest, options));
  EXPECT_TRUE(MnistDividesTestSet(options));
  EXPECT_FALSE(MnistDividesTestSet({.directory = folder / "elsewhere"})) << "there is nothing to divide";
  folder.Write("train-images-idx3-ubyte", Images(20));
  EXPECT_FALSE(MnistDividesTestSet(options));
  ASSERT_EQ(train.size(), 16u);
  ASSERT_EQ(test.size(), 4u);
  EXPECT_EQ(train[15][1].Item<int>(), 5);
  EXPECT_EQ(test[0][1].Item<int>(), 6);
  EXPECT_EQ(test[0][0].spec(), (TensorSpec{DType::kF32, {1, 4, 4}}));
  // A border of one row above and below; of the two spare columns' halves the left one is empty.
  const float p = 16.0f / 255.0f;
  EXPECT_THAT(
      test[0][0].data<float>(),
      ::testing::Pointwise(::testing::FloatEq(), std::vector<float>{0, 0, 0, 0, p, p, p, 0, p, p, p, 0, 0, 0, 0, 0}));
}

TEST(Mnist, WithTrainingFilesUsesEachPairWhole) {
  const TemporaryFolder folder;
  WriteGzip(folder / "train-images-idx3-ubyte.gz", Images(7));
  WriteGzip(folder / "train-labels-idx1-ubyte.gz", Labels(7));
  folder.Write("t10k-images-idx3-ubyte", Images(5));
  WriteGzip(folder / "t10k-labels-idx1-ubyte.gz", Labels(5));
  const MnistOptions options{.directory = folder.path(), .one_hot = true};
  const std::vector<Row> train = AllRows(Mnist(Split::kTrain, options));
  EXPECT_EQ(train.size(), 7u);
  EXPECT_EQ(train[3][1].ToFloats(), (std::vector<float>{0, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_FLOAT_EQ(train[0][0].data<float>()[0], -0.1307f / 0.3081f);
  EXPECT_EQ(AllRows(Mnist(Split::kTest, options)).size(), 5u);
}

TEST(Mnist, GivesTheRowsThatItsSamplingChooses) {
  const TemporaryFolder folder;
  folder.Write("t10k-images-idx3-ubyte", Images(20));
  folder.Write("t10k-labels-idx1-ubyte", Labels(20));
  const std::vector<Row> rows =
      AllRows(Mnist(Split::kTest, {.directory = folder.path(), .sampling = {.num_shards = 2, .shard_id = 1}}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][1].Item<int>(), 7);
  EXPECT_EQ(rows[1][1].Item<int>(), 9);
}

TEST(MnistDataset, GivesBytesOfTheFilesThatItsUsageAsksFor) {
  const TemporaryFolder folder;
  WriteGzip(folder / "train-images-idx3-ubyte.gz", Images(7));
  folder.Write("train-labels-idx1-ubyte", Labels(7));
  EXPECT_EQ(MnistDataset(folder.path()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(MnistDataset(folder.path()).status().message()),
              HasSubstr(folder / "t10k-images-idx3-ubyte"));
  folder.Write("t10k-images-idx3-ubyte", Images(5));
  folder.Write("t10k-labels-idx1-ubyte", Labels(5));
  const Dataset train = MnistDataset(folder.path(), {.usage = Usage::kTrain});
  EXPECT_THAT(train.column_names(), ::testing::ElementsAre("image", "label"));
  EXPECT_EQ(train.class_names()[9], "9");
  EXPECT_EQ(*train.size(), 7);
  EXPECT_EQ(*MnistDataset(folder.path(), {.usage = Usage::kTest}).size(), 5);
  const std::vector<Row> all = AllRows(MnistDataset(folder.path(), {.usage = Usage::kAll}));
  ASSERT_EQ(all.size(), 12u);
  EXPECT_EQ(all[6][0].spec(), (TensorSpec{DType::kU8, {2, 3, 1}}));
  EXPECT_THAT(all[6][0].data<std::uint8_t>(), ::testing::Each(6));
  EXPECT_EQ(all[6][1].Item<int>(), 6);
  EXPECT_EQ(all[8][1].Item<int>(), 1);
  const std::vector<Row> shard = AllRows(MnistDataset(folder.path(), {.sampling = {.num_shards = 6, .shard_id = 1}}));
  ASSERT_EQ(shard.size(), 2u);
  EXPECT_EQ(shard[1][1].Item<int>(), 0);
}

TEST(MnistDataset, BadFilesAreNamed) {
  const TemporaryFolder folder;
  folder.Write("train-images-idx3-ubyte", Images(2));
  folder.Write("train-labels-idx1-ubyte", Labels(2));
  folder.Write("t10k-images-idx3-ubyte", BigEndian(0x803) + BigEndian(1) + BigEndian(1) + BigEndian(3) + "abc");
  folder.Write("t10k-labels-idx1-ubyte", Labels(1));
  EXPECT_EQ(std::string(MnistDataset(folder.path()).status().message()),
            folder / "t10k-images-idx3-ubyte" + " has images of 1x3, but those for training are 2x3");
  folder.Write("t10k-images-idx3-ubyte", Images(0));
  folder.Write("t10k-labels-idx1-ubyte", Labels(0));
  EXPECT_THAT(std::string(MnistDataset(folder.path(), {.usage = Usage::kTest}).status().message()),
              HasSubstr("t10k-images-idx3-ubyte has no images"));
  folder.Write("train-labels-idx1-ubyte", Labels(2).substr(0, 9));
  EXPECT_THAT(std::string(MnistDataset(folder.path(), {.usage = Usage::kTrain}).status().message()),
              HasSubstr("train-labels-idx1-ubyte: the header declares 2 bytes, 1 follow"));
}

TEST(Mnist, BadFilesAreErrorsThatSayWhatWasRead) {
  EXPECT_THAT(ErrorOf(Labels(4), Labels(4)), HasSubstr("magic number is 0x00000801, expected 0x00000803"));
  EXPECT_THAT(ErrorOf(Images(4), Images(4)), HasSubstr("magic number is 0x00000803, expected 0x00000801"));
  EXPECT_THAT(ErrorOf("", Labels(4)), HasSubstr("is truncated: 0 bytes, its header takes 16"));
  EXPECT_THAT(ErrorOf(Images(4).substr(0, 10), Labels(4)), HasSubstr("is truncated: 10 bytes"));
  EXPECT_THAT(ErrorOf(Images(4).substr(0, 39), Labels(4)), HasSubstr("declares 4x2x3 bytes, 23 follow (truncated"));
  EXPECT_THAT(ErrorOf(Images(4) + "x", Labels(4)), HasSubstr("declares 4x2x3 bytes, 25 follow"));
  EXPECT_THAT(ErrorOf(Images(4), Labels(4).substr(0, 10)), HasSubstr("declares 4 bytes, 2 follow"));
  EXPECT_THAT(ErrorOf(Images(4), Labels(5)), HasSubstr("has 4 images, but"));
  std::string labels = Labels(4);
  labels[8 + 2] = 10;
  EXPECT_THAT(ErrorOf(Images(4), labels), HasSubstr("label 10 in row 2 is out of range 0..9"));
  const std::string lie = BigEndian(0x803) + BigEndian(0xffffffff) + BigEndian(0xffffffff) + BigEndian(0xffffffff);
  EXPECT_THAT(ErrorOf(lie, Labels(4)), HasSubstr("declares 4294967295x4294967295x4294967295 bytes, 0 follow"));
}

TEST(Mnist, TruncatedGzipMissingFilesAndSmallSizesAreErrors) {
  const TemporaryFolder folder;
  const MnistOptions options{.directory = folder.path()};
  absl::Status status = Mnist(Split::kTrain, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder / "t10k-images-idx3-ubyte.gz"));
  WriteGzip(folder / "t10k-images-idx3-ubyte.gz", Images(40));
  status = Mnist(Split::kTrain, options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder / "t10k-labels-idx1-ubyte"));
  folder.Write("t10k-labels-idx1-ubyte", Labels(40));
  EXPECT_TRUE(Mnist(Split::kTrain, options).status().ok());
  status = Mnist(Split::kTrain, {.directory = folder.path(), .image_size = 2}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("image_size 2 is smaller than the 2x3 images"));
  const std::string content = mpc::testing::ReadAll(folder / "t10k-images-idx3-ubyte.gz");
  folder.Write("t10k-images-idx3-ubyte.gz", content.substr(0, content.size() - 6));
  status = Mnist(Split::kTrain, options).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("is truncated: it ends inside its gzip stream"));
}

}  // namespace
}  // namespace mpc::data
