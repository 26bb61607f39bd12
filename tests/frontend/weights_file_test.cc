// Weights in shards, in low precision and as pickles.
#include "frontend/state/weights_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "frontend/state/safetensors.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc {
namespace {

using internal::ReadWeightsFile;
using testing::ErrorOf;
using ::testing::HasSubstr;

Safetensors One(const std::string& name, float value) {
  Safetensors content;
  content.tensors = {{name, Tensor::Full({2}, value)}};
  return content;
}

/// A folder with two shards and their index.
class Shards : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(SaveSafetensors(folder_ / "model-00001-of-00002.safetensors", One("a", 1)).ok());
    ASSERT_TRUE(SaveSafetensors(folder_ / "model-00002-of-00002.safetensors", One("b", 2)).ok());
    index_ = WriteIndex(R"({"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"})");
  }
  std::string WriteIndex(const std::string& map) {
    return folder_.Write(internal::kIndexName, R"({"metadata": {"total_size": 16}, "weight_map": )" + map + "}");
  }
  std::string ErrorOfIndex(const std::string& map) { return ErrorOf(ReadWeightsFile(WriteIndex(map)).status()); }

  testing::TemporaryFolder folder_;
  std::string index_;
};

TEST_F(Shards, AnIndexAndItsFolderStandForAllShards) {
  for (const std::string& path : {index_, folder_.path()}) {
    const absl::StatusOr<Safetensors> content = ReadWeightsFile(path);
    ASSERT_TRUE(content.ok()) << content.status();
    ASSERT_EQ(content->tensors.size(), 2u);
    EXPECT_EQ(content->Find("a")->ToFloats(), std::vector<float>(2, 1));
    EXPECT_EQ(content->Find("b")->ToFloats(), std::vector<float>(2, 2));
  }
}

TEST_F(Shards, AFolderWithOneFileStandsForIt) {
  ASSERT_TRUE(SaveSafetensors(folder_ / internal::kWeightsName, One("whole", 3)).ok());
  const absl::StatusOr<Safetensors> content = ReadWeightsFile(folder_.path());
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_NE(content->Find("whole"), nullptr);
}

TEST_F(Shards, PathsThatLeaveTheFolderAreRefused) {
  const testing::TemporaryFolder other;
  ASSERT_TRUE(SaveSafetensors(other / "x.safetensors", One("a", 1)).ok());
  const std::string name = std::filesystem::path(other.path()).filename().string();
  for (const std::string& shard : {"../" + name + "/x.safetensors", "sub/../../" + name + "/x.safetensors",
                                   other / "x.safetensors", std::string(".."), std::string()}) {
    EXPECT_THAT(ErrorOfIndex("{\"a\": \"" + shard + "\"}"), HasSubstr("'" + shard + "' leaves the folder")) << shard;
  }
}

TEST_F(Shards, AFolderBelowTheIndexIsFine) {
  std::filesystem::create_directory(folder_ / "sub");
  ASSERT_TRUE(SaveSafetensors(folder_ / "sub/x.safetensors", One("a", 1)).ok());
  EXPECT_TRUE(ReadWeightsFile(WriteIndex(R"({"a": "sub/../sub/x.safetensors"})")).ok());
}

TEST_F(Shards, AllThatIsWrongIsListed) {
  const std::string error = ErrorOfIndex(
      R"({"c": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors",
          "d": "model-00003-of-00002.safetensors", "e": "../e.safetensors"})");
  EXPECT_THAT(error, HasSubstr("'a' is in model-00001-of-00002.safetensors, where the index does not have it"));
  EXPECT_THAT(error, HasSubstr("'c' is not in model-00001-of-00002.safetensors"));
  EXPECT_THAT(error, HasSubstr("model-00003-of-00002.safetensors"));
  EXPECT_THAT(error, HasSubstr("'../e.safetensors' leaves the folder"));
}

TEST_F(Shards, OneEntryInTwoShardsIsAnError) {
  ASSERT_TRUE(SaveSafetensors(folder_ / "model-00002-of-00002.safetensors", One("a", 2)).ok());
  EXPECT_THAT(ErrorOf(ReadWeightsFile(index_).status()),
              HasSubstr("'a' is in model-00002-of-00002.safetensors, where the index does not have it"));
}

TEST_F(Shards, BrokenIndicesAreErrors) {
  EXPECT_THAT(ErrorOfIndex("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOfIndex("[]"), HasSubstr("not an object with \"weight_map\""));
  EXPECT_THAT(ErrorOfIndex(R"({"a": 1})"), HasSubstr("the file of 'a' is not a string"));
  EXPECT_THAT(ErrorOf(ReadWeightsFile(folder_.Write("x.index.json", "[1]")).status()), HasSubstr("not an object"));
}

TEST(WeightsFile, AFolderWithoutWeightsSaysWhatItLacks) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT(ErrorOf(ReadWeightsFile(folder.path()).status()),
              HasSubstr("has neither model.safetensors nor model.safetensors.index.json"));
  folder.Write("pytorch_model.bin", "PK\x03\x04 and so on");
  EXPECT_THAT(ErrorOf(ReadWeightsFile(folder.path()).status()), HasSubstr("pytorch_model.bin is a pickle"));
}

TEST(WeightsFile, OfAPickleTheErrorSaysHowToConvertIt) {
  const testing::TemporaryFolder folder;
  const std::string zip("PK\x03\x04\0\0\x08\x08\0\0", 10);
  const std::string legacy("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
  for (const std::string& content : {zip, legacy}) {
    const std::string path = folder.Write("resnet18.pth", content);
    const std::string error = ErrorOf(ReadWeightsFile(path).status());
    EXPECT_THAT(error, HasSubstr("is a pickle, as torch.save writes it"));
    EXPECT_THAT(error, HasSubstr("\n  import torch; from safetensors.torch import save_file\n  save_file({"));
    EXPECT_THAT(error, HasSubstr("torch.load(\"" + path + "\", map_location=\"cpu\", weights_only=True)"));
    EXPECT_THAT(error, HasSubstr("\"" + folder / "resnet18.safetensors\")"));
  }
}

TEST(WeightsFile, AHeaderAsLongAsAPickleBeginsIsNone) {
  // The header's length, 0x0280, is written as a pickle's first bytes.
  const testing::TemporaryFolder folder;
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize(0x280, ' ');
  const std::string length("\x80\x02\0\0\0\0\0\0", 8);
  EXPECT_TRUE(ReadWeightsFile(folder.Write("x", length + header + std::string(4, '\0'))).ok());
}

}  // namespace
}  // namespace mpc
