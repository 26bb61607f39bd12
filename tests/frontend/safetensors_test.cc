#include "frontend/state/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "tests/frontend/temporary_folder.h"

namespace mpc {
namespace {

using ::mpc::testing::ReadAll;
using ::mpc::testing::TemporaryFolder;
using ::testing::HasSubstr;

std::string File(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + data;
}

absl::StatusOr<Safetensors> Parse(const std::string& content) {
  return ParseSafetensors({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()}, "x.safetensors");
}

std::string ErrorOf(const std::string& content) {
  const absl::StatusOr<Safetensors> parsed = Parse(content);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("x.safetensors"));
  return std::string(parsed.status().message());
}

TEST(Safetensors, WritesTheBytesOfThePythonLibrary) {
  // safetensors.numpy.save({"b": float32 [1, 2], "a": float16 [1], "c": int64 scalar 7}, {"format": "pt"}): the widest
  // type first.
  const TemporaryFolder folder;
  const Safetensors content = {{{"b", Tensor::From<float>({1, 2}, {2})},
                                {"a", Tensor::From<Half>({Half(1.0f)}, {1})},
                                {"c", Tensor::Scalar<std::int64_t>(7)}},
                               {{"format", "pt"}}};
  ASSERT_TRUE(SaveSafetensors(folder / "x", content).ok());
  std::string header = R"({"__metadata__":{"format":"pt"},"c":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                       R"("a":{"dtype":"F16","shape":[1],"data_offsets":[16,18]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(ReadAll(folder / "x"), File(header, std::string("\7\0\0\0\0\0\0\0"
                                                            "\0\0\x80\x3f\0\0\0\x40"
                                                            "\0\x3c",
                                                            18)));
}

TEST(Safetensors, RoundTripsEveryTypeAndRank) {
  const TemporaryFolder folder;
  Safetensors saved;
  saved.metadata = {{"step", "3"}, {"note", "quote \" and \xc3\xa9"}};
  int index = 0;
  for (std::size_t type = 0; type < kDTypes.size(); ++type) {
    const auto dtype = static_cast<DType>(type);
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 1, 2}}) {
      saved.tensors.emplace_back("layer." + std::to_string(index++), Tensor::Full(shape, 1, dtype));
    }
  }
  ASSERT_TRUE(SaveSafetensors(folder / "x", saved).ok());
  const absl::StatusOr<Safetensors> loaded = LoadSafetensors(folder / "x");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->metadata, saved.metadata);
  ASSERT_EQ(loaded->tensors.size(), saved.tensors.size());
  for (const auto& [name, tensor] : saved.tensors) {
    const Tensor* found = loaded->Find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->spec(), tensor.spec());
    EXPECT_EQ(found->bytes(), tensor.bytes());
  }
  EXPECT_EQ(loaded->Find("layer"), nullptr);
}

TEST(Safetensors, AnEmptyFileHasAnEmptyObject) {
  const TemporaryFolder folder;
  ASSERT_TRUE(SaveSafetensors(folder / "x", {}).ok());
  EXPECT_EQ(ReadAll(folder / "x"), File("{}      ", ""));
  EXPECT_TRUE(LoadSafetensors(folder / "x")->tensors.empty());
}

TEST(Safetensors, EveryPrefixOfAFileIsAnError) {
  const std::string file = File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  ASSERT_TRUE(Parse(file).ok());
  for (std::size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(Parse(file.substr(0, size)).ok()) << size;
  EXPECT_THAT(ErrorOf(file + "9"), HasSubstr("9 bytes of data, its tensors end at 8"));
}

TEST(Safetensors, EveryDamagedByteOfAHeaderIsAnErrorOrReadsCleanly) {
  const std::string file = File(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  for (std::size_t i = 0; i < file.size() - 8; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const absl::StatusOr<Safetensors> parsed = Parse(damaged);
      if (parsed.ok()) {
        for (const auto& [name, tensor] : parsed->tensors) EXPECT_EQ(tensor.bytes().size(), 8u);
      }
    }
  }
}

TEST(Safetensors, ErrorsSayWhatWasFoundAndWhere) {
  const auto entry = [](const std::string& fields) { return "{\"a\":{" + fields + "}}"; };
  EXPECT_THAT(ErrorOf("1234"), HasSubstr("4 bytes"));
  EXPECT_THAT(ErrorOf(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)),
              HasSubstr("should have 18446744073709551615 bytes, but 2 follow"));
  EXPECT_THAT(ErrorOf(File("{\"a\":", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(File("[1]", "")), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf(File("{\"a\":3}", "")), HasSubstr("tensor 'a': not an object"));
  EXPECT_THAT(ErrorOf(File("{\"__metadata__\":{\"k\":1}}", "")), HasSubstr("'k' is not a string"));
  EXPECT_THAT(ErrorOf(File(entry(R"("dtype":"F8","shape":[1],"data_offsets":[0,1])"), "1")),
              HasSubstr("tensor 'a': unknown dtype 'F8'; accepted are I64"));
  EXPECT_THAT(ErrorOf(File(entry(R"("dtype":"BOOL","shape":[-1],"data_offsets":[0,1])"), "1")),
              HasSubstr("shape is not"));
  EXPECT_THAT(ErrorOf(File(entry(R"("dtype":"BOOL","shape":[1.0],"data_offsets":[0,1])"), "1")),
              HasSubstr("shape is not"));
  EXPECT_THAT(ErrorOf(File(entry(R"("dtype":"BOOL","shape":[4611686018427387904,4],"data_offsets":[0,1])"), "1")),
              HasSubstr("more bytes than"));
  EXPECT_THAT(ErrorOf(File(entry(R"("dtype":"BOOL","shape":[1],"data_offsets":[0])"), "1")), HasSubstr("two offsets"));
  EXPECT_THAT(ErrorOf(File(entry(R"("dtype":"BOOL","shape":[2],"data_offsets":[0,2])"), "1")),
              HasSubstr("data_offsets [0, 2] are not inside the file's 1 bytes"));
  EXPECT_THAT(ErrorOf(File(entry(R"("dtype":"BOOL","shape":[1],"data_offsets":[1,0])"), "1")), HasSubstr("not inside"));
  EXPECT_THAT(ErrorOf(File(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,2])"), "12")),
              HasSubstr("hold 2 bytes, tensor<1xf32> needs 4"));
}

TEST(Safetensors, OverlapsGapsAndRepeatedNamesAreErrors) {
  const auto tensor = [](const std::string& name, int begin, int end) {
    return "\"" + name + R"(":{"dtype":"BOOL","shape":[)" + std::to_string(end - begin) + R"(],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  EXPECT_THAT(ErrorOf(File("{" + tensor("a", 0, 2) + "," + tensor("b", 1, 3) + "}", "123")),
              HasSubstr("tensors 'a' and 'b' overlap: [0, 2] and [1, 3]"));
  EXPECT_THAT(ErrorOf(File("{" + tensor("a", 0, 1) + "," + tensor("b", 2, 3) + "}", "123")),
              HasSubstr("tensor 'b' begins at 2, but the data before it ends at 1"));
  EXPECT_THAT(ErrorOf(File("{" + tensor("a", 0, 1) + "," + tensor("a", 1, 2) + "}", "12")),
              HasSubstr("names 'a' twice"));
  EXPECT_THAT(ErrorOf(File(R"({"a":{"dtype":"BOOL","dtype":"F32","shape":[1],"data_offsets":[0,1]}})", "1")),
              HasSubstr("names 'dtype' twice"));
}

TEST(Safetensors, RefusesToSaveWhatCouldNotBeRead) {
  const TemporaryFolder folder;
  const Tensor one = Tensor::Zeros({1});
  const auto error = [&](Safetensors content) {
    const absl::Status status = SaveSafetensors(folder / "x", content);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error({{{"a", one}, {"a", one}}, {}}), HasSubstr("'a' is given twice"));
  EXPECT_THAT(error({{{"__metadata__", one}}, {}}), HasSubstr("reserved"));
  EXPECT_THAT(error({{{"a", Tensor()}}, {}}), HasSubstr("empty"));
  EXPECT_THAT(error({{{"a", Tensor::Zeros({-1})}}, {}}), HasSubstr("negative"));
  EXPECT_THAT(error({{{"\xff", one}}, {}}), HasSubstr("UTF-8"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(LoadSafetensors(folder / "none").status().code(), absl::StatusCode::kNotFound);
}

TEST(Safetensors, ManyTensorsTakeTimeInProportion) {
  const TemporaryFolder folder;
  const auto seconds = [&folder](int tensors) {
    Safetensors content;
    for (int i = 0; i < tensors; ++i) content.tensors.emplace_back("layer." + std::to_string(i), Tensor::Scalar(1.0f));
    const std::clock_t begin = std::clock();
    EXPECT_TRUE(SaveSafetensors(folder / "x", content).ok());
    const absl::StatusOr<Safetensors> loaded = LoadSafetensors(folder / "x");
    const std::clock_t end = std::clock();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_TRUE(loaded.ok() && loaded->tensors.size() == static_cast<std::size_t>(tensors));
    return static_cast<double>(end - begin) / CLOCKS_PER_SEC;
  };
  const double few = seconds(4000);
  EXPECT_LT(seconds(32000), 24 * few) << "8 times as many; their square would be 64 times as much";
}

TEST(Safetensors, TensorsWithoutElementsKeepTheOrderOfTheFile) {
  const std::string header = R"({"b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                             R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})";
  const absl::StatusOr<Safetensors> loaded = Parse(File(header, ""));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->tensors.size(), 2u);
  EXPECT_EQ(loaded->tensors[0].first, "b");
}

}  // namespace
}  // namespace mpc
