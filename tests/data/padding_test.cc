// PaddedBatch and BucketBatchByLength.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/data/number_rows.h"

namespace mpc::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Row i: "words" f32 [lengths[i]] of values i + 1, and "label" i32 [] of i.
Dataset Sentences(const std::vector<int>& lengths) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    rows.push_back({Tensor::Full({lengths[i]}, static_cast<double>(i + 1)),
                    Tensor::Scalar<std::int32_t>(static_cast<std::int32_t>(i))});
  }
  return GeneratorDataset(std::move(rows), {"words", "label"});
}

std::vector<Row> Batches(const Dataset& dataset) {
  std::vector<Row> batches;
  auto iterator = dataset.NewIterator(0);
  EXPECT_TRUE(iterator.ok()) << iterator.status();
  for (Row row; iterator.ok();) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&row);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) break;
    batches.push_back(row);
  }
  return batches;
}

TEST(PaddedBatch, PadsToTheLargestOfEachBatch) {
  const Dataset dataset = Sentences({1, 3, 2}).PaddedBatch(2);
  EXPECT_EQ(*dataset.size(), 2);
  const std::vector<Row> batches = Batches(dataset);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0][0].shape(), (Shape{2, 3}));
  EXPECT_THAT(batches[0][0].data<float>(), ElementsAre(1, 0, 0, 2, 2, 2));
  EXPECT_THAT(batches[0][1].data<std::int32_t>(), ElementsAre(0, 1));
  EXPECT_EQ(batches[1][0].shape(), (Shape{1, 2}));
  EXPECT_EQ(Batches(Sentences({1, 3, 2}).PaddedBatch(2, /*drop_remainder=*/true)).size(), 1u);
}

TEST(PaddedBatch, PadsAsPadInfoSays) {
  const std::vector<Row> batches =
      Batches(Sentences({1, 2}).PaddedBatch(2, false, {{"words", {.shape = Shape{4}, .value = -1}}}));
  EXPECT_EQ(batches[0][0].shape(), (Shape{2, 4}));
  EXPECT_THAT(batches[0][0].data<float>(), ElementsAre(1, -1, -1, -1, 2, 2, -1, -1));
}

TEST(PaddedBatch, PadsEveryAxis) {
  const Tensor wide = Tensor::From<std::int32_t>({1, 2, 3, 4, 5, 6}, {2, 1, 3});
  const Tensor high = Tensor::From<std::int32_t>({7, 8}, {1, 2, 1});
  const std::vector<Row> batches =
      Batches(GeneratorDataset(std::vector<Row>{{wide}, {high}}, {"x"}).PaddedBatch(2, false, {{"x", {.value = 9}}}));
  EXPECT_EQ(batches[0][0].shape(), (Shape{2, 2, 2, 3}));
  EXPECT_THAT(batches[0][0].data<std::int32_t>(), ElementsAre(1, 2, 3, 9, 9, 9, 4, 5, 6, 9, 9, 9,  //
                                                              7, 9, 9, 8, 9, 9, 9, 9, 9, 9, 9, 9));
}

TEST(PaddedBatch, RowsThatDoNotFitAreNamed) {
  EXPECT_EQ(MessageOf(Sentences({1, 5}).PaddedBatch(2, false, {{"words", {.shape = Shape{4}}}})),
            "column 'words': row 1 of the epoch is tensor<5xf32>, but extent 0 is padded to 4");
  EXPECT_EQ(MessageOf(Sentences({1, 2}).PaddedBatch(2, false, {{"label", {}}})),
            "column 'words': row 1 of the epoch is tensor<2xf32>, but row 0 of the same batch is tensor<1xf32>");
  EXPECT_THAT(MessageOf(Sentences({1}).PaddedBatch(1, false, {{"words", {.shape = Shape{4, 4}}}})),
              HasSubstr("the shape of its padding has rank 2"));
  EXPECT_THAT(MessageOf(Sentences({1}).PaddedBatch(1, false, {{"word", {}}})),
              HasSubstr("no column 'word'; columns are words, label"));
  EXPECT_THAT(MessageOf(Sentences({1}).PaddedBatch(1, false, {{"words", {.shape = Shape{-2}}}})),
              HasSubstr("extent -2; accepted are -1 and above"));
  EXPECT_THAT(MessageOf(Sentences({1}).PaddedBatch(0)), HasSubstr("batch size must be at least 1, got 0"));
  EXPECT_THAT(MessageOf(Sentences({1}).PaddedBatch(2, true)), HasSubstr("larger than the data set (1 rows)"));
}

TEST(PaddedBatch, AValueThatTheColumnCannotHoldIsAnError) {
  const auto padded = [](const Tensor& row, double value) {
    return MessageOf(GeneratorDataset(std::vector<Row>{{row}}, {"x"}).PaddedBatch(1, false, {{"x", {.value = value}}}));
  };
  const Tensor bytes = Tensor::From<std::uint8_t>({7}, {1});
  const std::string accepted = "; u8 takes whole numbers from 0 to 255";
  EXPECT_EQ(padded(bytes, -1), "pad_info of column 'x': the value is -1" + accepted);
  EXPECT_EQ(padded(bytes, 300), "pad_info of column 'x': the value is 300" + accepted);
  EXPECT_EQ(padded(bytes, 0.5), "pad_info of column 'x': the value is 0.5" + accepted);
  EXPECT_EQ(padded(bytes, std::nan("")), "pad_info of column 'x': the value is nan" + accepted);
  EXPECT_EQ(padded(bytes, 255), "");
  EXPECT_THAT(padded(Tensor::Full({1}, 1, DType::kBool), 2), HasSubstr("i1 takes 0 and 1"));
  const Tensor wide = Tensor::From<std::int64_t>({1}, {1});
  EXPECT_THAT(padded(wide, 0x1p63), HasSubstr("i64 takes whole numbers from -9223372036854775808 to"));
  EXPECT_EQ(padded(wide, -0x1p63), "");
  EXPECT_THAT(padded(Tensor::Full({1}, 1), 1e300), HasSubstr("the value is 1e+300; f32 takes numbers"));
  for (const double value : {0.1, std::nan(""), HUGE_VAL}) EXPECT_EQ(padded(Tensor::Full({1}, 1), value), "") << value;
}

TEST(BucketBatchByLength, BatchesRowsOfSimilarLength) {
  const Dataset dataset = Sentences({1, 7, 2, 4, 3, 9, 1}).BucketBatchByLength("words", {3, 6}, {2, 2, 1});
  const std::vector<Row> batches = Batches(dataset);
  EXPECT_EQ(*dataset.size(), 5);
  ASSERT_EQ(batches.size(), 5u);
  EXPECT_THAT(batches[0][1].data<std::int32_t>(), ElementsAre(1));
  EXPECT_THAT(batches[1][1].data<std::int32_t>(), ElementsAre(0, 2));
  EXPECT_EQ(batches[1][0].shape(), (Shape{2, 2}));
  EXPECT_THAT(batches[2][1].data<std::int32_t>(), ElementsAre(3, 4));
  EXPECT_THAT(batches[3][1].data<std::int32_t>(), ElementsAre(5));
  EXPECT_THAT(batches[4][1].data<std::int32_t>(), ElementsAre(6)) << "the remainder";
}

TEST(BucketBatchByLength, HasAtMostOneShapeForEachBoundary) {
  std::vector<int> lengths;
  for (int i = 0; i < 200; ++i) lengths.push_back((i * 37) % 16);
  const Dataset dataset = Sentences(lengths).Shuffle(1).BucketBatchByLength(
      "words", {4, 9, 16}, {8, 4, 2, 1}, {.pad_to_bucket_boundary = true, .drop_remainder = true});
  std::set<Shape> shapes;
  for (const Row& batch : Batches(dataset)) shapes.insert(batch[0].shape());
  EXPECT_THAT(shapes, ElementsAre(Shape{2, 15}, Shape{4, 8}, Shape{8, 3}));
  const std::vector<Row> padded = Batches(Sentences({1, 2}).BucketBatchByLength(
      "words", {5}, {2, 1}, {.pad_info = {{"words", {.value = -1}}}, .pad_to_bucket_boundary = true}));
  EXPECT_THAT(padded[0][0].data<float>(), ElementsAre(1, -1, -1, -1, 2, 2, -1, -1));
}

TEST(BucketBatchByLength, AsksALengthFunctionOfSeveralColumns) {
  BucketBatchOptions options{.element_length_function = [](const Row& row) -> absl::StatusOr<std::int64_t> {
    return row[0].dim(0) + row[1].Item<int>();
  }};
  const std::vector<Row> batches =
      Batches(Sentences({3, 1, 1}).BucketBatchByLength({"words", "label"}, {3}, {2, 2}, options));
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_THAT(batches[0][1].data<std::int32_t>(), ElementsAre(0, 2));
  EXPECT_THAT(batches[1][1].data<std::int32_t>(), ElementsAre(1));
}

TEST(BucketBatchByLength, BadArgumentsAndLengthsAreNamed) {
  const Dataset source = Sentences({1, 9});
  EXPECT_EQ(MessageOf(source.BucketBatchByLength("words", {5}, {1, 1}, {.pad_to_bucket_boundary = true})),
            "column 'words', row 1: length 9 has no boundary to be padded to; lengths below 5 are accepted");
  EXPECT_THAT(MessageOf(source.BucketBatchByLength("words", {5, 5}, {1, 1, 1})), HasSubstr("above 0 and rise"));
  EXPECT_THAT(MessageOf(source.BucketBatchByLength("words", {}, {1})), HasSubstr("there must be a boundary"));
  EXPECT_THAT(MessageOf(source.BucketBatchByLength("words", {5}, {1})), HasSubstr("one size more than boundaries"));
  EXPECT_THAT(MessageOf(source.BucketBatchByLength("words", {5}, {1, 0})), HasSubstr("sizes must be at least 1"));
  EXPECT_THAT(MessageOf(source.BucketBatchByLength("label", {5}, {1, 1})), HasSubstr("rank 0 has no length"));
  EXPECT_THAT(MessageOf(source.BucketBatchByLength({"words", "label"}, {5}, {1, 1})),
              HasSubstr("2 columns need an element_length_function"));
  EXPECT_THAT(MessageOf(source.BucketBatchByLength("words", {5}, {2, 2}, {.drop_remainder = true})),
              HasSubstr("none of the 2 rows of the epoch is left in a batch"));
}

TEST(PaddedBatch, AnExtentBeyondMemorysNumbersIsNamed) {
  const auto padded = [](std::int64_t extent) {
    return MessageOf(Sentences({1, 3, 2, 1}).PaddedBatch(4, false, {{"words", {.shape = Shape{extent}}}}));
  };
  for (const std::int64_t extent : {std::int64_t{1} << 60, std::int64_t{1} << 62, INT64_MAX}) {
    EXPECT_EQ(padded(extent), absl::StrCat("column 'words': 4 rows padded to tensor<", extent, "xf32>: shape 4x",
                                           extent, " needs more bytes than 64 bits can count"));
  }
  EXPECT_EQ(padded(4), "");
}

TEST(PaddedBatch, AnExtentThatNoMemoryHoldsIsNamed) {
  // The first is within what 64 bits count, the second within what a system promises.
  for (const std::int64_t extent : {std::int64_t{1} << 58, std::int64_t{1} << 42}) {
    const Dataset padded = Sentences({1, 3, 2, 1}).PaddedBatch(2, false, {{"words", {.shape = Shape{extent}}}});
    const absl::StatusOr<std::unique_ptr<DatasetIterator>> rows = padded.NewIterator(0);
    ASSERT_TRUE(rows.ok()) << rows.status();
    Row row;
    EXPECT_EQ((*rows)->Next(&row).status(),
              absl::ResourceExhaustedError(
                  absl::StrCat("column 'words': 2 rows, the first of them row 0 of the epoch, padded to tensor<",
                               extent, "xf32> need ", extent * 8, " bytes; the system does not have them")));
  }
}

TEST(BucketBatchByLength, ABoundaryBeyondMemorysNumbersIsNamed) {
  const Dataset dataset =
      Sentences({5, 6}).BucketBatchByLength("words", {4, INT64_MAX}, {8, 8, 8}, {.pad_to_bucket_boundary = true});
  EXPECT_THAT(MessageOf(dataset), HasSubstr("column 'words': 2 rows padded to tensor<9223372036854775806xf32>: shape"));
}

}  // namespace
}  // namespace mpc::data
