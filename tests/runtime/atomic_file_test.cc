#include "runtime/atomic_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace mpc::runtime {
namespace {

class AtomicFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static absl::Status Write(const std::filesystem::path& path, const std::vector<std::string>& parts) {
    std::vector<absl::Span<const std::uint8_t>> chunks;
    for (const std::string& part : parts) {
      chunks.emplace_back(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
    }
    return WriteFileAtomically(path.string(), chunks);
  }
  static std::string Content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::size_t FilesInFolder() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

TEST_F(AtomicFile, WritesAllChunksInOrderAndLeavesNothingBeside) {
  const std::filesystem::path path = folder_ / "weights.bin";
  ASSERT_TRUE(Write(path, {"head", "", "er", "data"}).ok());
  EXPECT_EQ(Content(path), "headerdata");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(AtomicFile, ReplacesAnOlderFile) {
  const std::filesystem::path path = folder_ / "weights.bin";
  ASSERT_TRUE(Write(path, {"a long older content"}).ok());
  ASSERT_TRUE(Write(path, {"new"}).ok());
  EXPECT_EQ(Content(path), "new");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(AtomicFile, AMissingFolderIsAnErrorThatNamesThePath) {
  const absl::Status status = Write(folder_ / "missing" / "weights.bin", {"x"});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("missing/weights.bin"), absl::string_view::npos) << status;
}

TEST_F(AtomicFile, AFolderInItsPlaceStaysAndNothingIsLeftBeside) {
  std::filesystem::create_directories(folder_ / "weights.bin" / "content");
  EXPECT_FALSE(Write(folder_ / "weights.bin", {"x"}).ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "weights.bin" / "content"));
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(AtomicFile, TakesAPathWithoutAFolder) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const absl::Status status = Write("plain.bin", {"x"});
  std::filesystem::current_path(before);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Content(folder_ / "plain.bin"), "x");
}

}  // namespace
}  // namespace mpc::runtime
