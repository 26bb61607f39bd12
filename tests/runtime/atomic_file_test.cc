#include "runtime/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
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
  const absl::Status status = Write(folder_ / "weights.bin", {"x"});
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("weights.bin' is a folder, not a file"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "weights.bin" / "content"));
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(AtomicFile, WritesWhatASymbolicLinkLeadsTo) {
  std::filesystem::create_directories(folder_ / "far");
  std::ofstream(folder_ / "far" / "weights.bin") << "a long older content";
  std::filesystem::create_symlink("far/weights.bin", folder_ / "near");
  std::filesystem::create_symlink(folder_ / "near", folder_ / "link");
  ASSERT_TRUE(Write(folder_ / "link", {"new"}).ok());
  EXPECT_EQ(std::filesystem::read_symlink(folder_ / "near"), "far/weights.bin");
  EXPECT_EQ(std::filesystem::read_symlink(folder_ / "link"), folder_ / "near");
  EXPECT_EQ(Content(folder_ / "far" / "weights.bin"), "new");
  EXPECT_EQ(FilesInFolder(), 3u);
}

TEST_F(AtomicFile, MakesTheFileThatALinkLeadsTo) {
  std::filesystem::create_symlink("later", folder_ / "link");
  EXPECT_TRUE(CheckWritable(folder_ / "link").ok());
  ASSERT_TRUE(Write(folder_ / "link", {"new"}).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(Content(folder_ / "later"), "new");
}

TEST_F(AtomicFile, LinksInACircleAreAnError) {
  std::filesystem::create_symlink("b", folder_ / "a");
  std::filesystem::create_symlink("a", folder_ / "b");
  for (const absl::Status& status : {Write(folder_ / "a", {"x"}), CheckWritable(folder_ / "a")}) {
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("more than 40 links"));
  }
  EXPECT_EQ(FilesInFolder(), 2u);
}

TEST_F(AtomicFile, ADeviceIsWrittenStraightAndStays) {
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat("/dev/full", &before), 0);
  const absl::Status full = Write("/dev/full", {"x"});
  EXPECT_THAT(std::string(full.message()), testing::HasSubstr("cannot write \"/dev/full\"")) << full;
  EXPECT_TRUE(Write("/dev/null", {"x"}).ok());
  ASSERT_EQ(::stat("/dev/full", &after), 0);
  EXPECT_TRUE(S_ISCHR(after.st_mode));
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_TRUE(CheckWritable("/dev/full").ok());
}

TEST_F(AtomicFile, APipeIsWrittenStraightAndStays) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(CheckWritable(pipe).ok());
  std::string read;
  std::thread reader([&] { read = Content(pipe); });
  const absl::Status status = Write(pipe, {"through ", "the pipe"});
  reader.join();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(read, "through the pipe");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(AtomicFile, AnOpenDescriptorGoesOnWhereItStands) {
  const std::filesystem::path path = folder_ / "log";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(descriptor, "before ", 7), 7);
  const std::string name = "/proc/self/fd/" + std::to_string(descriptor);
  EXPECT_TRUE(CheckWritable(name).ok());
  EXPECT_TRUE(Write(name, {"written"}).ok());
  ASSERT_EQ(::write(descriptor, " after", 6), 6);
  ::close(descriptor);
  EXPECT_EQ(Content(path), "before written after");
  EXPECT_FALSE(Write(name, {"x"}).ok());
}

TEST_F(AtomicFile, ANewFileHasThePermissionsThatAreAskedFor) {
  const std::filesystem::path path = folder_ / "own";
  ASSERT_TRUE(WriteTextFile(path, "x", {.sync = false, .permissions = 0600}).ok());
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
}

TEST_F(AtomicFile, CheckWritableTellsWhatWritingWould) {
  EXPECT_TRUE(CheckWritable(folder_ / "new").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckWritable(folder_)));
  EXPECT_THAT(std::string(CheckWritable(folder_ / "missing" / "new").message()), testing::HasSubstr("no folder"));
  std::filesystem::create_symlink("missing/new", folder_ / "link");
  EXPECT_THAT(std::string(CheckWritable(folder_ / "link").message()), testing::HasSubstr("missing'"));
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
