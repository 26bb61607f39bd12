// What a checkpoint looks like in a file, and what happens to damaged ones.
#include "frontend/state/checkpoint_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "frontend/state/checkpoint_metadata.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::internal {
namespace {

using ::mpc::testing::ReadAll;
using ::mpc::testing::TemporaryFolder;
using ::testing::HasSubstr;

Safetensors SmallContent() {
  return {{{"fc.weight", Tensor::From<float>({1, 2}, {2})}, {"step", Tensor::Scalar<std::int32_t>(3)}},
          {{"format", "mpc"}}};
}

absl::StatusOr<Safetensors> ReadBytes(const TemporaryFolder& folder, const std::string& bytes) {
  return ReadCheckpointFile(folder.Write("damaged", bytes));
}

bool SameContent(const Safetensors& a, const Safetensors& b) {
  if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
  for (const auto& [name, tensor] : a.tensors) {
    const Tensor* other = b.Find(name);
    if (other == nullptr || other->spec() != tensor.spec() || other->bytes() != tensor.bytes()) return false;
  }
  return true;
}

/// Header length, header, data.
std::string File(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + data;
}

TEST(CheckpointFile, HasTheBytesOfTheFormat) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteCheckpointFile(folder / "x", SmallContent()).ok());
  const std::string checksum = ContentChecksum(SmallContent());
  std::string header = R"({"__metadata__":{"format":"mpc","mpc_crc32":")" + checksum + R"("},)" +
                       R"("fc.weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("step":{"dtype":"I32","shape":[],"data_offsets":[8,12]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(ReadAll(folder / "x"), File(header, std::string("\0\0\x80\x3f\0\0\0\x40\3\0\0\0", 12)));
}

TEST(CheckpointFile, TheChecksumIsThatOfTheContentInAnyOrder) {
  Safetensors content = SmallContent();
  // zlib.crc32 of b"fc.weight\0tensor<2xf32>\0" + data + b"step\0tensor<i32>\0" + data + b"format\0mpc\0".
  EXPECT_EQ(ContentChecksum(content), "9b2e8688");
  std::swap(content.tensors[0], content.tensors[1]);
  content.metadata["mpc_crc32"] = "whatever";
  EXPECT_EQ(ContentChecksum(content), "9b2e8688");
}

TEST(CheckpointFile, EveryTruncatedFileIsAnError) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteCheckpointFile(folder / "x", SmallContent()).ok());
  const std::string good = ReadAll(folder / "x");
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ReadBytes(folder, good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ReadBytes(folder, good + "x").ok());
  EXPECT_TRUE(ReadBytes(folder, good).ok());
}

TEST(CheckpointFile, EveryFlippedBitIsAnErrorOrChangesNothing) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteCheckpointFile(folder / "x", SmallContent()).ok());
  const std::string good = ReadAll(folder / "x");
  const Safetensors expected = *ReadCheckpointFile(folder / "x");
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const absl::StatusOr<Safetensors> read = ReadBytes(folder, damaged);
      if (!read.ok()) continue;
      // White space, or the name of the checksum itself: nothing that is read from the file has changed.
      Safetensors found = *read;
      std::erase_if(found.metadata, [](const auto& entry) { return entry.first != "format"; });
      Safetensors wanted = expected;
      wanted.metadata.erase("mpc_crc32");
      EXPECT_TRUE(SameContent(found, wanted)) << "byte " << i << ", bit " << bit;
    }
  }
}

TEST(CheckpointFile, OffsetsAndLengthsBeyondTheFileAreErrors) {
  const TemporaryFolder folder;
  const auto entry = [](const std::string& offsets, const std::string& shape) {
    return R"({"a":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}}";
  };
  for (const auto& [offsets, shape] :
       std::vector<std::pair<std::string, std::string>>{{"0,18446744073709551615", "1"},
                                                        {"18446744073709551612,18446744073709551615", "1"},
                                                        {"9223372036854775804,9223372036854775807", "1"},
                                                        {"4,8", "1"},
                                                        {"8,0", "1"},
                                                        {"-4,0", "1"},
                                                        {"0,4.0", "1"},
                                                        {"0,1e400", "1"},
                                                        {"0,4", "4611686018427387904"},
                                                        {"0,4", "4294967296,4294967296,4294967296"}}) {
    EXPECT_FALSE(ReadBytes(folder, File(entry(offsets, shape), "abcd")).ok()) << offsets << " of " << shape;
  }
  EXPECT_TRUE(ReadBytes(folder, File(entry("0,4", "1"), "abcd")).ok());
  for (std::uint64_t length : {std::uint64_t{9}, std::uint64_t{100'000'001}, std::uint64_t{1} << 40,
                               std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    std::string file(8, '\0');
    for (int i = 0; i < 8; ++i) file[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i) & 0xff);
    EXPECT_FALSE(ReadBytes(folder, file + "{}      ").ok()) << length;
  }
  // Nested deeper than any stack would like.
  EXPECT_FALSE(ReadBytes(folder, File(std::string(100'000, '['), "")).ok());
}

TEST(CheckpointFile, AFileWithoutAChecksumIsTakenAsItIs) {
  const TemporaryFolder folder;
  ASSERT_TRUE(SaveSafetensors(folder / "x", SmallContent()).ok());
  EXPECT_TRUE(ReadCheckpointFile(folder / "x").ok());
}

CheckpointMetadata FullMetadata() {
  CheckpointMetadata metadata;
  metadata.model = "Net";
  metadata.optimizer = "Momentum";
  metadata.global_step = 12;
  metadata.position = {.data_epoch = 5, .run_epoch = 2, .step_in_epoch = 3, .steps_per_epoch = 4};
  metadata.amp = {{"level", "O2"}, {"dtype", "f16"}};
  metadata.loss_scale = {{"mode", "dynamic"}};
  metadata.step = {{"accumulation_steps", "2"}};
  metadata.precision = {{"net/fc#dense.0", "f16"}};
  metadata.choices = {{"train_step(tensor<1xf32>)", {{"conv", "onednn \"a\""}}}};
  metadata.environment = {{"threads", "2"}};
  metadata.roles = {{"fc.weight", Role::kParameter}};
  metadata.inputs = {{"data", {DType::kF32, {8, 2}}}, {"label", {DType::kI32, {}}}};
  metadata.callbacks = {{"EarlyStopping of loss (auto)", "best=0.25 wait=1 best_epoch=2"}};
  metadata.last_step = {{"loss", "0.25"}};
  metadata.class_names = {"ant", "d\xc3\xb6rr \"a\""};
  return metadata;
}

TEST(CheckpointMetadata, ComesBackAsItWasWritten) {
  const TextMap stored = FormatMetadata(FullMetadata());
  EXPECT_TRUE(IsTrainingCheckpoint(stored));
  EXPECT_EQ(stored.at("position"), R"({"data_epoch":5,"run_epoch":2,"step_in_epoch":3,"steps_per_epoch":4})");
  const absl::StatusOr<CheckpointMetadata> read = ParseMetadata(stored, "x");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatMetadata(*read), stored);
  EXPECT_EQ(read->inputs, FullMetadata().inputs);
  EXPECT_EQ(read->callbacks, FullMetadata().callbacks);
  EXPECT_EQ(read->last_step, FullMetadata().last_step);
  EXPECT_EQ(read->class_names, FullMetadata().class_names);
}

TEST(CheckpointMetadata, NeedsNoClassNamesNoStatesOfCallbacksAndNoLastStep) {
  CheckpointMetadata metadata = FullMetadata();
  metadata.callbacks.clear();
  metadata.last_step.clear();
  metadata.class_names.clear();
  const TextMap stored = FormatMetadata(metadata);
  EXPECT_FALSE(stored.contains("callbacks"));
  EXPECT_FALSE(stored.contains("last_step"));
  EXPECT_FALSE(stored.contains("class_names"));
  EXPECT_TRUE(ParseMetadata(stored, "x")->callbacks.empty());
  EXPECT_TRUE(ParseMetadata(stored, "x")->last_step.empty());
  EXPECT_TRUE(ParseMetadata(stored, "x")->class_names.empty());
}

TEST(CheckpointMetadata, ErrorsListEveryDamagedField) {
  TextMap stored = FormatMetadata(FullMetadata());
  stored.erase("model");
  stored["position"] = R"({"data_epoch":-1})";
  stored["global_step"] = "1e3";
  stored["amp"] = "{";
  stored["roles"] = R"({"fc.weight":3})";
  stored["choices"] = "[]";
  stored["inputs"] = R"([{"name":"x","dtype":"f7","shape":[1]}])";
  stored["callbacks"] = R"({"EarlyStopping":1})";
  stored["last_step"] = R"({"loss":1})";
  stored["class_names"] = R"(["ant",2])";
  const absl::Status status = ParseMetadata(stored, "x").status();
  for (const char* part : {"x is a damaged checkpoint", "'model' is missing", "'position' is not",
                           "'global_step' is not", "'amp' is not valid JSON", "'roles' is not", "'choices' is not",
                           "'inputs' is not", "'callbacks' is not", "'last_step' is not", "'class_names' is not"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(CheckpointMetadata, ARoleThatNoStateHasIsAnErrorByName) {
  for (const char* role : {"weights", "input", ""}) {
    TextMap stored = FormatMetadata(FullMetadata());
    stored["roles"] = absl::StrCat(R"({"fc.weight":")", role, R"("})");
    const std::string expected = absl::StrCat("metadata 'roles' gives 'fc.weight' the role '", role, "'");
    EXPECT_THAT(std::string(ParseMetadata(stored, "x").status().message()), HasSubstr(expected));
    EXPECT_THAT(std::string(ParseRoles(stored, "x").status().message()), HasSubstr(expected));
  }
}

TEST(CheckpointMetadata, ANewerVersionIsAnError) {
  TextMap stored = FormatMetadata(FullMetadata());
  stored["format_version"] = "2";
  EXPECT_THAT(std::string(ParseMetadata(stored, "x").status().message()),
              HasSubstr("x has format version 2; this mpc reads version 1"));
}

}  // namespace
}  // namespace mpc::internal
