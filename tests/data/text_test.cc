#include "frontend/data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/frontend/temporary_folder.h"

namespace mpc::data {
namespace {

using ::mpc::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::SizeIs;

/// `bytes` bytes: 0, 1, ..., 250, 0, ... A window tells where it begins by its first byte, up to 251.
std::string Counting(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text.push_back(static_cast<char>(i % 251));
  return text;
}

std::vector<std::int32_t> Values(const Tensor& tensor) {
  const absl::Span<const std::int32_t> values = tensor.data<std::int32_t>();
  return {values.begin(), values.end()};
}

using Windows = std::vector<std::vector<std::int32_t>>;

/// The windows of an epoch, `skip` left out; checks the labels.
Windows Epoch(const Dataset& dataset, std::int64_t epoch, int skip = 0) {
  Windows windows;
  EXPECT_TRUE(dataset.status().ok()) << dataset.status();
  if (!dataset.status().ok()) return windows;
  auto iterator = *dataset.NewIterator(epoch);
  for (Row row; *iterator->Next(&row);) {
    if (skip-- > 0) continue;
    std::vector<std::int32_t> window = Values(row[0]);
    std::vector<std::int32_t> labels = Values(row[1]);
    EXPECT_TRUE(std::equal(window.begin() + 1, window.end(), labels.begin())) << "labels are the bytes that follow";
    window.push_back(labels.back());
    windows.push_back(std::move(window));
  }
  return windows;
}

class Text : public ::testing::Test {
 protected:
  Dataset Read(const std::string& text, Split split, TextOptions options) {
    options.path = folder_.Write("text", text);
    return TextDataset(split, options);
  }
  std::string ErrorOf(const std::string& text, TextOptions options) {
    return std::string(Read(text, Split::kTrain, std::move(options)).status().message());
  }

  TemporaryFolder folder_;
};

TEST_F(Text, ValidationPredictsTheLastTenthOnceInOrder) {
  const Windows windows = Epoch(Read(Counting(200), Split::kTest, {.tokens = 6}), 0);
  // Bytes 180 .. 199: three windows predict 181 .. 198, the last byte fills none.
  EXPECT_THAT(windows, ElementsAre(ElementsAre(180, 181, 182, 183, 184, 185, 186),
                                   ElementsAre(186, 187, 188, 189, 190, 191, 192),
                                   ElementsAre(192, 193, 194, 195, 196, 197, 198)));
  EXPECT_EQ(Epoch(Read(Counting(200), Split::kTest, {.tokens = 6, .seed = 9}), 3), windows);
}

TEST_F(Text, TrainingWindowsLieInTheFirstNineTenthsAndBeginAtEachPlace) {
  const Dataset train = Read(Counting(200), Split::kTrain, {.tokens = 6, .windows = 10000});
  const Windows windows = Epoch(train, 0);
  ASSERT_THAT(windows, SizeIs(10000));
  std::map<std::int32_t, int> begins;
  for (const std::vector<std::int32_t>& window : windows) {
    ++begins[window[0]];
    for (std::size_t i = 0; i < window.size(); ++i) EXPECT_EQ(window[i], window[0] + static_cast<std::int32_t>(i));
    EXPECT_LT(window.back(), 180) << "a byte of the validation";
  }
  // 174 places of equal chance: 57 draws each are expected, with a deviation of 7.6. Six of them are passed by one
  // place in 500 million.
  EXPECT_THAT(begins, SizeIs(174));
  for (const auto& [begin, draws] : begins) EXPECT_THAT(draws, AllOf(Ge(57 - 45), Lt(57 + 47))) << begin;
}

TEST_F(Text, WindowsAreAFunctionOfSeedEpochAndRow) {
  const auto train = [&](std::uint64_t seed, std::int64_t windows) {
    return Read(Counting(200), Split::kTrain, {.tokens = 6, .windows = windows, .seed = seed});
  };
  const Windows first = Epoch(train(1, 20), 0);
  EXPECT_EQ(Epoch(train(1, 20), 0), first);
  EXPECT_NE(Epoch(train(2, 20), 0), first);
  EXPECT_NE(Epoch(train(1, 20), 1), first);
  // A run that stops in an epoch and goes on, and a longer epoch, read the same rows.
  EXPECT_EQ(Epoch(train(1, 20), 0, 7), Windows(first.begin() + 7, first.end()));
  const Windows longer = Epoch(train(1, 30), 0);
  EXPECT_EQ(Windows(longer.begin(), longer.begin() + 20), first);
}

TEST_F(Text, AnEpochMayHaveMoreWindowsThanMemoryHolds) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Windows first = Epoch(Read(Counting(200), Split::kTrain, {.tokens = 6, .windows = 5}), 2);
  const Dataset train = Read(Counting(200), Split::kTrain, {.tokens = 6, .windows = most});
  EXPECT_EQ(*train.size(), most);
  auto iterator = train.NewIterator(2);
  ASSERT_TRUE(iterator.ok()) << iterator.status();
  for (const std::vector<std::int32_t>& window : first) {
    Row row;
    ASSERT_TRUE(*(*iterator)->Next(&row));
    EXPECT_EQ(Values(row[0]), std::vector<std::int32_t>(window.begin(), window.end() - 1));
  }
}

TEST_F(Text, GivesTheWindowsThatItsSamplingChooses) {
  const auto read = [&](Split split, const SamplingOptions& sampling) {
    return Read(Counting(200), split, {.tokens = 6, .windows = 9, .sampling = sampling});
  };
  for (std::int64_t epoch : {0, 4}) {
    const Windows all = Epoch(read(Split::kTrain, {}), epoch);
    EXPECT_EQ(Epoch(read(Split::kTrain, {.num_samples = 2}), epoch), (Windows{all[0], all[1]}));
    EXPECT_EQ(Epoch(read(Split::kTrain, {.num_shards = 3, .shard_id = 1}), epoch), (Windows{all[1], all[4], all[7]}));
    EXPECT_EQ(Epoch(read(Split::kTrain, {.sampler = SubsetSampler({8, 0})}), epoch), (Windows{all[8], all[0]}));
    EXPECT_THAT(Epoch(read(Split::kTrain, {.sampler = RandomSampler(1)}), epoch),
                ::testing::UnorderedElementsAreArray(all));
  }
  const Windows all = Epoch(read(Split::kTest, {}), 0);
  EXPECT_EQ(Epoch(read(Split::kTest, {.num_shards = 3, .shard_id = 2}), 0), (Windows{all[2]}));
}

TEST_F(Text, AnEpochHoldsAsManyBytesAsThereAreByDefault) {
  EXPECT_EQ(*Read(Counting(1000), Split::kTrain, {.tokens = 6}).size(), 150);
  EXPECT_EQ(*Read(Counting(1000), Split::kTrain, {.tokens = 6, .windows = 7}).size(), 7);
  EXPECT_EQ(*Read(Counting(1000), Split::kTest, {.tokens = 6, .windows = 7}).size(), 16);
}

TEST_F(Text, EveryByteIsAToken) {
  std::string text(2560, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % 256);
  std::map<std::int32_t, int> seen;
  for (const auto& window : Epoch(Read(text, Split::kTest, {.tokens = 1}), 0)) ++seen[window[0]];
  EXPECT_THAT(seen, SizeIs(255)) << "the last byte begins no window";
  EXPECT_EQ(seen.begin()->first, 0);
  EXPECT_LT(seen.rbegin()->first, kByteVocabulary);
}

TEST_F(Text, BatchesStackWindows) {
  const Dataset batches = Read(Counting(200), Split::kTrain, {.tokens = 6, .windows = 8}).Batch(4);
  EXPECT_EQ(*batches.size(), 2);
  auto iterator = *batches.NewIterator(0);
  Row row;
  ASSERT_TRUE(*iterator->Next(&row));
  EXPECT_EQ(row[0].spec(), (TensorSpec{DType::kI32, {4, 6}}));
  EXPECT_EQ(row[1].spec(), (TensorSpec{DType::kI32, {4, 6}}));
}

TEST_F(Text, AMissingFileSaysWhereItWasLookedFor) {
  const Dataset missing = TextDataset(Split::kTrain, {.path = folder_ / "missing"});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr(folder_ / "missing"));
}

TEST_F(Text, AFolderIsNoText) {
  const Dataset folder = TextDataset(Split::kTrain, {.path = folder_.path()});
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(folder.status().message()), AllOf(HasSubstr(folder_.path()), HasSubstr("is a folder")));
}

TEST_F(Text, AnEmptyFileIsNoText) { EXPECT_THAT(ErrorOf("", {}), HasSubstr("text is empty")); }

TEST_F(Text, APartThatHoldsNoWindowTellsTheSizes) {
  EXPECT_THAT(ErrorOf(Counting(60), {.tokens = 6}),
              AllOf(HasSubstr("has 60 bytes, 54 for training and 6 for validation"), HasSubstr("take 7 of each part"),
                    HasSubstr("fewer tokens or more text")));
  EXPECT_EQ(*Read(Counting(70), Split::kTrain, {.tokens = 6}).size(), 63 / 6);
  EXPECT_EQ(*Read(Counting(70), Split::kTest, {.tokens = 6}).size(), 1) << "7 bytes hold one window";
}

TEST_F(Text, SizesOutOfRangeAreErrors) {
  EXPECT_THAT(ErrorOf(Counting(200), {.tokens = 0}), HasSubstr("tokens of a window must be at least 1, got 0"));
  EXPECT_THAT(ErrorOf(Counting(200), {.windows = -1}), HasSubstr("windows of an epoch must be at least 0, got -1"));
}

TEST(Sonnets, ComeWithMpc) {
  ::unsetenv("MPC_DATA_DIR");
  const Dataset train = TextDataset(Split::kTrain);
  const Dataset validation = TextDataset(Split::kTest);
  ASSERT_TRUE(train.status().ok()) << train.status();
  EXPECT_GT(*train.size(), 300);
  EXPECT_GT(*validation.size(), 30);
  // English text and line breaks, nothing else.
  for (const auto& window : Epoch(validation, 0)) {
    for (std::int32_t byte : window) EXPECT_TRUE(byte == '\n' || (byte >= ' ' && byte <= '~')) << byte;
  }
}

}  // namespace
}  // namespace mpc::data
