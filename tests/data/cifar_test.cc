#include "frontend/data/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/number_rows.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::data {
namespace {

using ::mpc::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A record whose planes hold red, green and blue; the first pixel's red is 7.
std::string Record(const std::string& labels, char red, char green, char blue) {
  std::string planes = std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
  planes[0] = 7;
  return labels + planes;
}

/// Batch i of CIFAR-10 has one record of label i; the test batch has one of label 9.
void WriteCifar10(const TemporaryFolder& folder) {
  for (char i = 1; i <= 5; ++i) {
    folder.Write("data_batch_" + std::to_string(int{i}) + ".bin", Record({i}, 1, 2, static_cast<char>(200)));
  }
  folder.Write("test_batch.bin", Record("\x09", 4, 5, 6));
}

TEST(Cifar10Dataset, ReadsThePublishedFiles) {
  const TemporaryFolder folder;
  WriteCifar10(folder);
  EXPECT_THAT(NumbersOf(Cifar10Dataset(folder.path(), {.usage = Usage::kTrain}), 0, 1), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(NumbersOf(Cifar10Dataset(folder.path(), {.usage = Usage::kTest}), 0, 1), ElementsAre(9));
  const Dataset all = Cifar10Dataset(folder.path());
  EXPECT_EQ(*all.size(), 6);
  EXPECT_THAT(all.column_names(), ElementsAre("image", "label"));
  EXPECT_EQ(all.class_names()[9], "truck");
  auto iterator = *all.NewIterator(0);
  Row row;
  ASSERT_TRUE(*iterator->Next(&row));
  EXPECT_EQ(row[0].spec(), (TensorSpec{DType::kU8, {32, 32, 3}}));
  EXPECT_EQ(row[1].spec(), (TensorSpec{DType::kI32, {}}));
  EXPECT_THAT(row[0].data<std::uint8_t>().subspan(0, 6), ElementsAre(7, 2, 200, 1, 2, 200));
  const SamplingOptions shard{.num_shards = 2, .shard_id = 1};
  EXPECT_THAT(NumbersOf(Cifar10Dataset(folder.path(), {.sampling = shard}), 0, 1), ElementsAre(2, 4, 9));
}

TEST(Cifar10Dataset, BadFilesAreNamed) {
  const TemporaryFolder folder;
  WriteCifar10(folder);
  std::filesystem::remove(folder / "data_batch_3.bin");
  EXPECT_THAT(MessageOf(Cifar10Dataset(folder.path())), HasSubstr(folder / "data_batch_3.bin.gz"));
  EXPECT_EQ(MessageOf(Cifar10Dataset(folder.path(), {.usage = Usage::kTest})), "");
  folder.Write("test_batch.bin", Record("\x09", 4, 5, 6).substr(0, 3000));
  EXPECT_EQ(MessageOf(Cifar10Dataset(folder.path(), {.usage = Usage::kTest})),
            folder / "test_batch.bin" +
                " has 3000 bytes: it is truncated, or no such file; accepted are multiples of 3073 bytes, one for each "
                "image");
  folder.Write("test_batch.bin", "");
  EXPECT_THAT(MessageOf(Cifar10Dataset(folder.path(), {.usage = Usage::kTest})), HasSubstr("0 bytes: it is empty"));
  folder.Write("test_batch.bin", Record("\x09", 4, 5, 6) + Record("\x0a", 4, 5, 6));
  EXPECT_EQ(MessageOf(Cifar10Dataset(folder.path(), {.usage = Usage::kTest})),
            folder / "test_batch.bin" + ": label 10 in row 1 is out of range 0..9");
}

TEST(Cifar100Dataset, ReadsBothLabels) {
  const TemporaryFolder folder;
  folder.Write("train.bin", Record("\x03\x63", 1, 2, 3) + Record("\x13\x05", 1, 2, 3));
  folder.Write("test.bin", Record("\x14\x05", 1, 2, 3));
  const Dataset train = Cifar100Dataset(folder.path(), {.usage = Usage::kTrain});
  EXPECT_THAT(train.column_names(), ElementsAre("image", "coarse_label", "fine_label"));
  EXPECT_THAT(NumbersOf(train, 0, 1), ElementsAre(3, 19));
  EXPECT_THAT(NumbersOf(train, 0, 2), ElementsAre(99, 5));
  EXPECT_THAT(MessageOf(Cifar100Dataset(folder.path())),
              HasSubstr("test.bin: coarse_label 20 in row 0 is out of range 0..19"));
}

}  // namespace
}  // namespace mpc::data
