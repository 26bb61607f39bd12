#include "frontend/data/numpy_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <limits>
#include <utility>

#include "tests/data/number_rows.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::data {
namespace {

using ::mpc::testing::ReadAll;
using ::mpc::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Column `column` of all rows, one after the other.
std::vector<float> ValuesOf(const Dataset& dataset, std::size_t column = 0) {
  std::vector<float> values;
  EXPECT_TRUE(dataset.status().ok()) << dataset.status();
  if (!dataset.status().ok()) return values;
  auto iterator = *dataset.NewIterator(0);
  for (Row row; *iterator->Next(&row);) {
    for (float value : row[column].ToFloats()) values.push_back(value);
  }
  return values;
}

const Tensor& Counting() {
  static const Tensor* const tensor =
      new Tensor(Tensor::From<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 2, 2}));
  return *tensor;
}

std::string Little(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> 8 * i));
  return text;
}

std::string Deflate(const std::string& content) {
  std::string packed(content.size() + 100, '\0');
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// A ZIP file, as numpy.savez or numpy.savez_compressed writes it.
std::string Archive(const std::vector<std::pair<std::string, std::string>>& members, bool deflated) {
  std::string file;
  std::string directory;
  for (const auto& [name, content] : members) {
    const std::string packed = deflated ? Deflate(content) : content;
    const auto checksum = static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    const std::string common = Little(20, 2) + Little(0, 2) + Little(deflated ? 8 : 0, 2) + Little(0, 4) +
                               Little(checksum, 4) + Little(static_cast<std::uint32_t>(packed.size()), 4) +
                               Little(static_cast<std::uint32_t>(content.size()), 4) +
                               Little(static_cast<std::uint32_t>(name.size()), 2);
    directory += "PK\x01\x02" + Little(20, 2) + common + Little(0, 2) + Little(0, 2) + Little(0, 2) + Little(0, 2) +
                 Little(0, 4) + Little(static_cast<std::uint32_t>(file.size()), 4) + name;
    file += "PK\x03\x04" + common + Little(4, 2) + name + "abcd" + packed;
  }
  const auto count = static_cast<std::uint32_t>(members.size());
  return file + directory + "PK\x05\x06" + Little(0, 4) + Little(count, 2) + Little(count, 2) +
         Little(static_cast<std::uint32_t>(directory.size()), 4) + Little(static_cast<std::uint32_t>(file.size()), 4) +
         Little(0, 2);
}

std::string NpyOf(const Tensor& tensor) {
  const TemporaryFolder folder;
  EXPECT_TRUE(tensor.Save(folder / "t.npy").ok());
  return ReadAll(folder / "t.npy");
}

TEST(NumpySlicesDataset, SlicesArraysAlongAxisZero) {
  const Dataset dataset = NumpySlicesDataset({Counting(), Tensor::From<std::int32_t>({5, 6, 7}, {3})});
  EXPECT_THAT(dataset.column_names(), ElementsAre("column_0", "column_1"));
  EXPECT_EQ(*dataset.size(), 3);
  EXPECT_THAT(ValuesOf(dataset), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(NumbersOf(dataset, 0, 1), ElementsAre(5, 6, 7));
  auto iterator = *dataset.NewIterator(0);
  Row row;
  ASSERT_TRUE(*iterator->Next(&row));
  EXPECT_EQ(row[0].shape(), (Shape{2, 2}));
  EXPECT_THAT(NumbersOf(NumpySlicesDataset({Tensor::From<std::int32_t>({5, 6, 7}, {3})}, {"x"},
                                           {.sampling = {.num_shards = 2, .shard_id = 1}})),
              ElementsAre(6, 5));
}

TEST(NumpySlicesDataset, ReadsAndMapsNpyFiles) {
  const TemporaryFolder folder;
  ASSERT_TRUE(Counting().Save(folder / "x.npy").ok());
  for (bool mapped : {false, true}) {
    const Dataset dataset = NumpySlicesDataset(folder / "x.npy", {"x"}, {.mapped = mapped});
    EXPECT_THAT(ValuesOf(dataset.Skip(1)), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
    EXPECT_THAT(dataset.column_names(), ElementsAre("x"));
  }
}

TEST(NumpySlicesDataset, ReadsFortranOrder) {
  const TemporaryFolder folder;
  // Element (i, j, k) is i + 3 j + 6 k in the file.
  std::string file = NpyOf(Counting());
  file.replace(file.find("False"), 5, "True ");
  folder.Write("x.npy", file);
  for (bool mapped : {false, true}) {
    const Dataset dataset = NumpySlicesDataset(folder / "x.npy", {}, {.mapped = mapped});
    EXPECT_THAT(ValuesOf(dataset), ElementsAre(0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11));
  }
}

TEST(NumpySlicesDataset, ReadsBytesAsU8) {
  const TemporaryFolder folder;
  std::string file = NpyOf(Tensor::From<std::uint8_t>({0, 128, 255, 7}, {2, 2}));
  EXPECT_THAT(file, HasSubstr("'|u1'"));
  for (bool mapped : {false, true}) {
    const Dataset dataset = NumpySlicesDataset(folder.Write("x.npy", file), {}, {.mapped = mapped});
    auto iterator = *dataset.NewIterator(0);
    Row row;
    ASSERT_TRUE(*iterator->Next(&row));
    EXPECT_EQ(row[0].spec(), (TensorSpec{DType::kU8, {2}}));
    EXPECT_THAT(ValuesOf(dataset), ElementsAre(0, 128, 255, 7));
  }
}

/// Members of archives are deflated or stored, and archives are mapped or read.
constexpr std::pair<bool, bool> kWays[] = {{false, false}, {false, true}, {true, false}, {true, true}};

TEST(NumpySlicesDataset, ReadsNpzArchives) {
  const TemporaryFolder folder;
  const std::string labels = NpyOf(Tensor::From<std::int32_t>({5, 6, 7}, {3}));
  for (const auto& [deflated, mapped] : kWays) {
    const std::string path =
        folder.Write("x.npz", Archive({{"data.npy", NpyOf(Counting())}, {"label.npy", labels}}, deflated));
    const Dataset all = NumpySlicesDataset(path, {}, {.mapped = mapped});
    EXPECT_THAT(all.column_names(), ElementsAre("data", "label"));
    EXPECT_THAT(ValuesOf(all), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
    EXPECT_THAT(NumbersOf(all, 0, 1), ElementsAre(5, 6, 7));
    EXPECT_THAT(NumbersOf(NumpySlicesDataset(path, {"label"}, {.mapped = mapped})), ElementsAre(5, 6, 7));
    EXPECT_EQ(MessageOf(NumpySlicesDataset(path, {"labels"}, {.mapped = mapped})),
              path + ": no member 'labels'; members are data, label");
  }
}

TEST(NumpySlicesDataset, ReadsMembersInFortranOrder) {
  const TemporaryFolder folder;
  std::string file = NpyOf(Counting());
  file.replace(file.find("False"), 5, "True ");
  for (const auto& [deflated, mapped] : kWays) {
    const std::string path = folder.Write("x.npz", Archive({{"data.npy", file}}, deflated));
    EXPECT_THAT(ValuesOf(NumpySlicesDataset(path, {}, {.mapped = mapped})),
                ElementsAre(0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11));
  }
}

TEST(NumpySlicesDataset, ReadsStoredMembersOfAMappedArchiveWhenTheirRowsAreRead) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("x.npz", Archive({{"data.npy", NpyOf(Counting())}}, /*deflated=*/false));
  const Dataset mapped = NumpySlicesDataset(path, {}, {.mapped = true});
  const Dataset read = NumpySlicesDataset(path);
  // The last element, 11.0f, becomes 12.0f in the file.
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(ReadAll(path).find("PK\x01\x02")) - 2);
  file.put('\x40');
  file.close();
  EXPECT_THAT(ValuesOf(mapped.Skip(2)), ElementsAre(8, 9, 10, 12));
  EXPECT_THAT(ValuesOf(read.Skip(2)), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(MessageOf(NumpySlicesDataset(path)), HasSubstr("does not have its size and checksum"));
}

TEST(NumpySlicesDataset, DamagedArchivesAreNamed) {
  const TemporaryFolder folder;
  for (bool deflated : {false, true}) {
    const std::string good = Archive({{"data.npy", NpyOf(Counting())}}, deflated);
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
      EXPECT_THAT(MessageOf(NumpySlicesDataset(folder.Write("x.npz", good.substr(0, bytes)))),
                  HasSubstr(folder / "x.npz"));
    }
    std::string damaged = good;
    damaged[good.find("PK\x01\x02") - 3] ^= 0x40;
    EXPECT_THAT(MessageOf(NumpySlicesDataset(folder.Write("x.npz", damaged))),
                HasSubstr("x.npz is damaged: member 'data.npy' does not have its size and checksum"));
    damaged = good;
    damaged[good.find("PK\x01\x02") + 10] = 14;
    EXPECT_THAT(MessageOf(NumpySlicesDataset(folder.Write("x.npz", damaged))),
                HasSubstr("method 14; accepted are stored (0) and deflated (8)"));
  }
}

TEST(NumpySlicesDataset, MembersThatShareTheirBytesAreRefused) {
  const TemporaryFolder folder;
  std::vector<float> values;
  for (int i = 0; i < 100; ++i) values.push_back(static_cast<float>(i) / 7);
  const std::string good = Archive({{"data.npy", NpyOf(Tensor::From(values, {100}))}}, /*deflated=*/true);
  const std::size_t directory = good.find("PK\x01\x02");
  const std::size_t end = good.find("PK\x05\x06");
  const std::string entry = good.substr(directory, end - directory);
  const std::string twice = good.substr(0, directory) + entry + entry + entry + "PK\x05\x06" + Little(0, 4) +
                            Little(3, 2) + Little(3, 2) + Little(static_cast<std::uint32_t>(3 * entry.size()), 4) +
                            Little(static_cast<std::uint32_t>(directory), 4) + Little(0, 2);
  EXPECT_THAT(MessageOf(NumpySlicesDataset(folder.Write("x.npz", twice))),
              HasSubstr("x.npz is damaged: its members overlap"));
}

TEST(NumpySlicesDataset, BadArraysAndFilesAreNamed) {
  const TemporaryFolder folder;
  for (bool mapped : {false, true}) {
    const auto message = [&](const std::string& content) {
      return MessageOf(NumpySlicesDataset(folder.Write("x.npy", content), {}, {.mapped = mapped}));
    };
    EXPECT_EQ(message(""), folder / "x.npy" + " is empty");
    EXPECT_THAT(message("hello, world"), HasSubstr("x.npy is not an .npy file"));
    EXPECT_THAT(message(NpyOf(Counting()).substr(0, 140)), HasSubstr("needs 48 bytes of elements, the file has 12"));
    EXPECT_THAT(message(NpyOf(Tensor::Scalar(1.0f))), HasSubstr("which has no rows along axis 0"));
    EXPECT_THAT(message(NpyOf(Tensor::Zeros({0, 2}))), HasSubstr("which has no rows along axis 0"));
    EXPECT_EQ(NumpySlicesDataset(folder / "none.npy", {}, {.mapped = mapped}).status().code(),
              absl::StatusCode::kNotFound);
  }
  EXPECT_THAT(MessageOf(NumpySlicesDataset(std::vector<Tensor>())), HasSubstr("needs an array"));
  EXPECT_EQ(MessageOf(NumpySlicesDataset({Counting(), Tensor::Zeros({2})})), "array 1 has 2 rows, but array 0 has 3");
  EXPECT_THAT(MessageOf(NumpySlicesDataset({Counting()}, {"a", "b"})), HasSubstr("2 column names for 1 arrays"));
  EXPECT_THAT(MessageOf(NumpySlicesDataset({Tensor()})), HasSubstr("array 0 of NumpySlicesDataset"));
}

TEST(NumpySlicesDataset, RefusesNaNWhereAsked) {
  const Tensor values = Tensor::From<float>({1, std::numeric_limits<float>::quiet_NaN()}, {2});
  EXPECT_EQ(MessageOf(NumpySlicesDataset({values})), "");
  EXPECT_EQ(MessageOf(NumpySlicesDataset({values}, {}, {.refuse_nan = true})),
            "array 0: row 1 has a NaN, which is refused");
}

}  // namespace
}  // namespace mpc::data
