#include "frontend/data/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/data/number_rows.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::data {
namespace {

using ::mpc::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Row> AllOf(const Dataset& dataset) {
  std::vector<Row> rows;
  EXPECT_TRUE(dataset.status().ok()) << dataset.status();
  if (!dataset.status().ok()) return rows;
  auto iterator = *dataset.NewIterator(0);
  for (Row row; *iterator->Next(&row);) rows.push_back(row);
  return rows;
}

/// What a file of this content is refused with, without the path.
std::string ErrorOf(const std::string& content, const CsvOptions& options = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("x.csv", content);
  std::string message = MessageOf(CSVDataset({path}, options));
  EXPECT_EQ(message.substr(0, path.size()), path);
  return message.substr(std::min(path.size(), message.size()));
}

TEST(CSVDataset, ReadsAHeaderAndNumbers) {
  const TemporaryFolder folder;
  const Dataset dataset = CSVDataset({folder.Write("x.csv", "a,b\n1,2.5\n-3e2, 4\n")});
  EXPECT_THAT(dataset.column_names(), ElementsAre("a", "b"));
  const std::vector<Row> rows = AllOf(dataset);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0][0].spec(), (TensorSpec{DType::kF32, {}}));
  EXPECT_EQ(rows[0][1].Item<float>(), 2.5f);
  EXPECT_EQ(rows[1][0].Item<float>(), -300.0f);
  EXPECT_EQ(rows[1][1].Item<float>(), 4.0f);
}

TEST(CSVDataset, ReadsFilesThatEndInsideAndAtTheEndOfAChunk) {
  const TemporaryFolder folder;
  // The first chunks have 4,096 and 8,192 bytes, the largest ones 262,144.
  for (const std::int64_t bytes : {4094, 4096, 4098, 12286, 12288, 12290, 520192, 1000000}) {
    std::string text = "a\n";
    while (static_cast<std::int64_t>(text.size()) < bytes) text += "7\n";
    const Dataset dataset = CSVDataset({folder.Write("x.csv", text)});
    ASSERT_TRUE(dataset.status().ok()) << dataset.status();
    EXPECT_EQ(*dataset.size(), bytes / 2 - 1) << bytes;
  }
}

TEST(CSVDataset, HasATypeAndADefaultForEachColumn) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("x.csv", "9007199254740993;7;true;0.5\n1;;0;\n");
  const Dataset dataset =
      CSVDataset({path}, {.field_delim = ';',
                          .column_defaults = {{DType::kI64}, {DType::kI32, -1}, {DType::kBool}, {DType::kF64, 0.25}},
                          .column_names = {"id", "age", "member", "score"}});
  const std::vector<Row> rows = AllOf(dataset);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0][0].data<std::int64_t>(), ElementsAre(9007199254740993));
  EXPECT_THAT(rows[1][1].data<std::int32_t>(), ElementsAre(-1));
  EXPECT_THAT(rows[0][2].data<bool>(), ElementsAre(true));
  EXPECT_THAT(rows[1][2].data<bool>(), ElementsAre(false));
  EXPECT_THAT(rows[1][3].data<double>(), ElementsAre(0.25));
}

TEST(CSVDataset, GivesTextAsBytes) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("x.csv", "name,age\nAda, 36\n\" B, \"\"C\"\"\",7\n,8\nD\xc3\xb6,9\n");
  const Dataset dataset = CSVDataset({path}, {.column_defaults = {{DType::kU8}, {DType::kI32}}});
  const std::vector<Row> rows = AllOf(dataset);
  ASSERT_EQ(rows.size(), 4u);
  std::vector<std::string> names;
  for (const Row& row : rows) {
    EXPECT_EQ(row[0].dtype(), DType::kU8);
    EXPECT_EQ(row[0].rank(), 1);
    names.emplace_back(row[0].bytes().begin(), row[0].bytes().end());
  }
  EXPECT_THAT(names, ElementsAre("Ada", " B, \"C\"", "", "D\xc3\xb6"));
  EXPECT_THAT(NumbersOf(dataset, 0, 1), ElementsAre(36, 7, 8, 9));
  const std::vector<Row> batch = AllOf(dataset.PaddedBatch(4));
  EXPECT_EQ(batch[0][0].shape(), (Shape{4, 7}));
  EXPECT_THAT(batch[0][0].data<std::uint8_t>().subspan(0, 4), ElementsAre('A', 'd', 'a', 0));
  EXPECT_THAT(MessageOf(CSVDataset({path}, {.column_defaults = {{DType::kU8, 1}, {}}})),
              HasSubstr("a column of text has no default value"));
}

TEST(CSVDataset, ReadsQuotesReturnsEmptyLinesAndAByteOrderMark) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("x.csv", "\xef\xbb\xbf\"a \"\"1\"\",\nz\",b\r\n\r\n\"1\",2\r\n\n3,\"4\"");
  const Dataset dataset = CSVDataset({path});
  EXPECT_THAT(dataset.column_names(), ElementsAre("a \"1\",\nz", "b"));
  EXPECT_THAT(NumbersOf(dataset, 0, 0), ElementsAre(1, 3));
  EXPECT_THAT(NumbersOf(dataset, 0, 1), ElementsAre(2, 4));
}

TEST(CSVDataset, ReadsFilesInOrderAndSamples) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = {folder.Write("1.csv", "a\n1\n2\n"), folder.Write("2.csv", "a\n3\n")};
  EXPECT_THAT(NumbersOf(CSVDataset(paths)), ElementsAre(1, 2, 3));
  EXPECT_THAT(NumbersOf(CSVDataset(paths, {.sampling = {.num_samples = 2}})), ElementsAre(1, 2));
  const std::string other = folder.Write("3.csv", "b\n3\n");
  EXPECT_EQ(MessageOf(CSVDataset({paths[0], other})),
            other + ", line 1: the columns are b, but those of the first file are a");
}

TEST(CSVDataset, BadFilesAreNamedWithLineAndColumn) {
  EXPECT_EQ(ErrorOf(""), " is empty: no columns");
  EXPECT_EQ(ErrorOf("\n\n"), " is empty: no columns");
  EXPECT_EQ(ErrorOf("a,b\n"), " has a line of column names and no rows");
  EXPECT_EQ(ErrorOf("a,a\n1,2\n"), ", line 1: two columns are called 'a'");
  EXPECT_EQ(ErrorOf("a,\n1,2\n"), ", line 1: a column name is empty");
  EXPECT_EQ(ErrorOf("a,b\n1,2\n\n3\n"), ", line 4: 1 fields, but there are 2 columns");
  EXPECT_EQ(ErrorOf("a,b\n1,2,\n"), ", line 2: 3 fields, but there are 2 columns");
  EXPECT_EQ(ErrorOf("a,b\n1,x\n"), ", line 2: column 'b': 'x' is not f32");
  EXPECT_EQ(ErrorOf("a,b\n1,1e40\n"), ", line 2: column 'b': '1e40' is not f32");
  EXPECT_EQ(ErrorOf("a,b\n1,-1e400\n"), ", line 2: column 'b': '-1e400' is not f32");
  EXPECT_EQ(ErrorOf("a\n1e400\n", {.column_defaults = {{DType::kF64}}}), ", line 2: column 'a': '1e400' is not f64");
  EXPECT_EQ(ErrorOf("a,b\n1, \n"), ", line 2: column 'b': the value is missing, and the column has no default");
  EXPECT_EQ(ErrorOf("a\n1.5\n", {.column_defaults = {{DType::kI32}}}), ", line 2: column 'a': '1.5' is not i32");
  EXPECT_EQ(ErrorOf("a\n\"1\n2\n"), ", line 2: a quote is not closed");
  EXPECT_THAT(ErrorOf("a\n\"1\"2\n"), HasSubstr("line 2: text follows the quoted field \"1\""));
  EXPECT_THAT(ErrorOf("a,b\n1,2\n", {.column_defaults = {{}}}), HasSubstr("has 1 entries, but there are 2 columns"));
  EXPECT_EQ(CSVDataset({"/nowhere/x.csv"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(CSVDataset({})), HasSubstr("needs a file"));
  EXPECT_THAT(MessageOf(CSVDataset({"x"}, {.column_defaults = {{DType::kF16}}})), HasSubstr("accepted are f32"));
}

TEST(CSVDataset, ADefaultThatTheColumnCannotHoldIsAnError) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("x.csv", "a,b\n1,1\n");
  const auto error = [&path](DType dtype, double value) {
    return MessageOf(CSVDataset({path}, {.column_defaults = {{}, {dtype, value}}}));
  };
  const std::string where = "CSVDataset: the default_value of column_defaults[1] is ";
  EXPECT_EQ(error(DType::kI32, 0.5), where + "0.5; i32 takes whole numbers from -2147483648 to 2147483647");
  EXPECT_THAT(error(DType::kI32, 3e9), HasSubstr(where + "3e+09"));
  EXPECT_THAT(error(DType::kI64, std::nan("")), HasSubstr(where + "nan; i64"));
  EXPECT_EQ(error(DType::kBool, -1), where + "-1; i1 takes 0 and 1");
  EXPECT_THAT(error(DType::kF32, 1e300), HasSubstr(where + "1e+300; f32"));
  for (const DType dtype : {DType::kI32, DType::kI64, DType::kBool, DType::kF32}) EXPECT_EQ(error(dtype, 1), "");
  EXPECT_EQ(error(DType::kF32, std::nan("")), "");
}

TEST(CSVDataset, ReadsInfinitiesThatAreWritten) {
  const TemporaryFolder folder;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const std::string path = folder.Write("x.csv", "a\ninf\n-inf\n+Infinity\n1e-400\n");
    EXPECT_THAT(NumbersOf(CSVDataset({path}, {.column_defaults = {{dtype}}})),
                ElementsAre(kInfinity, -kInfinity, kInfinity, 0));
  }
}

TEST(CSVDataset, RefusesNaNWhereAsked) {
  const TemporaryFolder folder;
  const std::vector<Row> rows = AllOf(CSVDataset({folder.Write("x.csv", "a\nnan\n")}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(std::isnan(rows[0][0].Item<float>()));
  EXPECT_EQ(ErrorOf("a\nnan\n", {.refuse_nan = true}), ", line 2: column 'a': 'nan' is refused; accepted are numbers");
}

TEST(CSVDataset, RefusesADefaultOfNaNWhereNaNIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("x.csv", "a,b\n1,\n");
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    EXPECT_EQ(MessageOf(CSVDataset({path}, {.column_defaults = {{}, {dtype, std::nan("")}}, .refuse_nan = true})),
              "CSVDataset: the default_value of column_defaults[1] is nan, which refuse_nan refuses; accepted are "
              "numbers");
    EXPECT_EQ(MessageOf(CSVDataset({path}, {.column_defaults = {{}, {dtype, 7.0}}, .refuse_nan = true})), "");
  }
}

TEST(CSVDataset, ReadsAReturnWithoutNewlineAtTheEnd) {
  const TemporaryFolder folder;
  for (const char* text : {"a,b\n1,2\r", "a,b\n1,\"2\"\r", "a,b\r\n1,\"2\"\r"}) {
    const std::vector<Row> rows = AllOf(CSVDataset({folder.Write("x.csv", text)}));
    ASSERT_EQ(rows.size(), 1u) << text;
    EXPECT_EQ(rows[0][1].Item<float>(), 2.0f) << text;
  }
  EXPECT_EQ(ErrorOf("a,b\n1,\"2\"\r3\n"), ", line 2: text follows the quoted field \"2\"");
}

TEST(CSVDataset, RefusesHexadecimalNumbers) {
  for (const char* text : {"0x10", "-0X1p3", "+0x1"}) {
    const std::string content = absl::StrCat("a\n", text, "\n");
    EXPECT_EQ(ErrorOf(content), absl::StrCat(", line 2: column 'a': '", text, "' is not f32"));
    EXPECT_THAT(ErrorOf(content, {.column_defaults = {{DType::kF64}}}), HasSubstr("is not f64"));
    EXPECT_THAT(ErrorOf(content, {.column_defaults = {{DType::kI64}}}), HasSubstr("is not i64"));
  }
}

}  // namespace
}  // namespace mpc::data
