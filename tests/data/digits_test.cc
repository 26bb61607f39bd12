#include "frontend/data/digits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "absl/strings/str_replace.h"
#include "frontend/data/find_data.h"
#include "tests/data/all_rows.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::data {
namespace {

using ::mpc::testing::ReadAll;
using ::mpc::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::array<int, 10> ClassCounts(const std::vector<Row>& rows) {
  std::array<int, 10> counts{};
  for (const Row& row : rows) ++counts[static_cast<std::size_t>(row[1].Item<int>())];
  return counts;
}

/// `count` lines of a digit that is all zero, with label 1.
std::string Lines(int count) {
  std::string line;
  for (int i = 0; i < 64; ++i) line += "0,";
  std::string text;
  for (int i = 0; i < count; ++i) text += line + "1\n";
  return text;
}

TEST(Digits, HaveTheirCountsAndClassBalance) {
  const std::vector<Row> train = AllRows(Digits(Split::kTrain));
  const std::vector<Row> test = AllRows(Digits(Split::kTest));
  ASSERT_EQ(train.size(), 1437u);
  ASSERT_EQ(test.size(), 360u);
  EXPECT_EQ(train[0][0].spec(), (TensorSpec{DType::kF32, {1, 32, 32}}));
  EXPECT_EQ(train[0][1].spec(), (TensorSpec{DType::kI32, {}}));
  const std::array<int, 10> total = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
  const std::array<int, 10> train_counts = ClassCounts(train);
  const std::array<int, 10> test_counts = ClassCounts(test);
  for (std::size_t digit = 0; digit < 10; ++digit) {
    EXPECT_EQ(train_counts[digit] + test_counts[digit], total[digit]);
    // A random fifth of about 180: mean 36, deviation 5.4 (hypergeometric); four deviations.
    EXPECT_NEAR(test_counts[digit], 36, 22) << digit;
  }
}

TEST(Digits, GiveTheRowsThatTheirSamplingChooses) {
  const std::vector<Row> test = AllRows(Digits(Split::kTest));
  const Dataset shard = Digits(Split::kTest, {.sampling = {.num_shards = 3, .shard_id = 2}});
  EXPECT_EQ(shard.class_names().size(), 10u);
  const std::vector<Row> rows = AllRows(shard);
  ASSERT_EQ(rows.size(), 120u);
  EXPECT_EQ(rows[1][0].ToFloats(), test[5][0].ToFloats());
}

TEST(Digits, TrainAndTestShareNoRow) {
  const auto keys = [](const std::vector<Row>& rows) {
    std::multiset<std::string> keys;
    for (const Row& row : rows)
      keys.emplace(reinterpret_cast<const char*>(row[0].bytes().data()), row[0].bytes().size());
    return keys;
  };
  const DigitsOptions options{.image_size = 8};
  const auto train = keys(AllRows(Digits(Split::kTrain, options)));
  const auto test = keys(AllRows(Digits(Split::kTest, options)));
  EXPECT_EQ(train.size() + test.size(), 1797u);
  for (const std::string& key : test) EXPECT_EQ(train.count(key), 0u);
}

TEST(Digits, ThirtyTwoABatchLeaveTwentyNine) {
  const Dataset batches = Digits(Split::kTrain).Shuffle(1).Batch(32).Prefetch();
  ASSERT_EQ(*batches.size(), 45);
  std::int64_t last = 0;
  for (auto& d : batches.CreateDictIterator()) last = d["image"].dim(0);
  EXPECT_EQ(last, 29);
  EXPECT_EQ(*Digits(Split::kTrain).Batch(32, true).size(), 44);
}

TEST(Digits, AreNormalised) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const Row& row : AllRows(Digits(Split::kTrain, {.image_size = 8}))) {
    for (float value : row[0].data<float>()) {
      sum += value;
      squares += static_cast<double>(value) * value;
      ++count;
    }
  }
  // The constants are those of all 1,797 digits.
  EXPECT_NEAR(sum / count, 0.0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / count), 1.0, 0.01);
}

TEST(Digits, AreEnlargedAsDocumented) {
  const Row raw = AllRows(Digits(Split::kTest, {.image_size = 8, .normalise = false}))[0];
  const Row nearest =
      AllRows(Digits(Split::kTest, {.image_size = 32, .resize = Resize::kNearest, .normalise = false}))[0];
  const Row bilinear = AllRows(Digits(Split::kTest, {.image_size = 16, .normalise = false}))[0];
  const auto source = raw[0].data<float>();
  for (std::size_t y = 0; y < 32; ++y) {
    for (std::size_t x = 0; x < 32; ++x) EXPECT_EQ(nearest[0].data<float>()[y * 32 + x], source[y / 4 * 8 + x / 4]);
  }
  // Twice the size: positions -1/4 (clamped), 1/4, 3/4, ... of the source; all weights are exact.
  const auto at = [&](std::size_t y, std::size_t x) { return source[y * 8 + x]; };
  const auto mix = [](float a, float b, float weight) { return a + (b - a) * weight; };
  EXPECT_EQ(bilinear[0].data<float>()[0], at(0, 0));
  const float expected = mix(mix(at(2, 3), at(2, 4), 0.75f), mix(at(3, 3), at(3, 4), 0.75f), 0.25f);
  EXPECT_FLOAT_EQ(bilinear[0].data<float>()[5 * 16 + 8], expected);
}

TEST(Digits, OneHotLabelsMatchTheSparseOnes) {
  const std::vector<Row> sparse = AllRows(Digits(Split::kTest));
  const std::vector<Row> one_hot = AllRows(Digits(Split::kTest, {.one_hot = true}));
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    std::vector<float> expected(10, 0.0f);
    expected[static_cast<std::size_t>(sparse[i][1].Item<int>())] = 1.0f;
    EXPECT_EQ(one_hot[i][1].ToFloats(), expected);
  }
}

TEST(Digits, BadFilesAreErrorsThatSayWhere) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& content) {
    const Dataset digits = Digits(Split::kTrain, {.path = folder.Write("digits.csv", content)});
    EXPECT_EQ(digits.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(digits.status().message());
  };
  EXPECT_TRUE(Digits(Split::kTrain, {.path = folder.Write("digits.csv", Lines(1797))}).status().ok());
  const std::string other_ends = absl::StrReplaceAll(Lines(1797), {{"\n", "\r\n"}});
  EXPECT_TRUE(Digits(Split::kTrain, {.path = folder.Write("digits.csv", other_ends)}).status().ok());
  EXPECT_THAT(error(Lines(1000)), HasSubstr("has 1000 digits, expected 1797"));
  EXPECT_THAT(error(""), HasSubstr("has 0 digits"));
  EXPECT_THAT(error(Lines(3).substr(0, 2 * 130 + 40)), HasSubstr("line 3: expected 64 pixels and a label"));
  EXPECT_THAT(error(Lines(3).substr(0, 2 * 130 + 40)), HasSubstr("truncated?"));
  EXPECT_THAT(error("17" + Lines(1).substr(1)), HasSubstr("line 1: pixel 17 is out of range 0..16"));
  EXPECT_THAT(error("-1" + Lines(1).substr(1)), HasSubstr("pixel -1"));
  EXPECT_THAT(error(Lines(1) + Lines(1).substr(0, 128) + "10\n"), HasSubstr("line 2: label 10 is out of range 0..9"));
  EXPECT_THAT(error("x" + Lines(1).substr(1)), HasSubstr("value 1 is missing or not an integer"));
  EXPECT_THAT(error(Lines(1).substr(0, 129) + ",3\n"), HasSubstr("value 65 is followed by more"));
  EXPECT_THAT(error("99999999999" + Lines(1).substr(1)), HasSubstr("value 1 is missing or not an integer"));
  EXPECT_FALSE(Digits(Split::kTrain, {.image_size = 7}).status().ok());
  EXPECT_EQ(Digits(Split::kTrain, {.path = folder / "none.csv"}).status().code(), absl::StatusCode::kNotFound);
}

TEST(Digits, TruncatedAndDamagedGzipFilesAreErrors) {
  const TemporaryFolder folder;
  const std::string good = ReadAll(*FindDataFile("digits.csv.gz"));
  const auto error = [&](const std::string& content) {
    const Dataset digits = Digits(Split::kTrain, {.path = folder.Write("digits.csv.gz", content)});
    EXPECT_EQ(digits.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(digits.status().message());
  };
  EXPECT_THAT(error(good.substr(0, good.size() / 2)), HasSubstr("is truncated: it ends inside its gzip stream"));
  EXPECT_THAT(error(good.substr(0, good.size() - 4)), HasSubstr("truncated"));
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(~damaged[good.size() / 2]);
  EXPECT_FALSE(error(damaged).empty());
  damaged = good;
  damaged[good.size() - 6] = static_cast<char>(~damaged[good.size() - 6]);
  EXPECT_THAT(error(damaged), HasSubstr("damaged"));
}

TEST(FindData, TheVariableComesFirstAndErrorsListEveryPlace) {
  const TemporaryFolder folder;
  folder.Write("some.file", "x");
  ASSERT_EQ(setenv("MPC_DATA_DIR", folder.path().c_str(), 1), 0);
  EXPECT_EQ(DataFolders()[0], folder.path());
  EXPECT_EQ(*FindDataFile("some.file"), folder / "some.file");
  const absl::Status status = FindDataFile("no.such.file").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  for (const std::string& place : DataFolders()) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(place + "/no.such.file"));
  }
  EXPECT_THAT(std::string(status.message()), HasSubstr("set MPC_DATA_DIR"));
  EXPECT_TRUE(FindDataFile("digits.csv.gz").ok()) << "the other places are still searched";
  unsetenv("MPC_DATA_DIR");
  EXPECT_NE(DataFolders()[0], folder.path());
}

}  // namespace
}  // namespace mpc::data
