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

TEST(EmptyPath, IsNamed) {
  const absl::Status expected = absl::InvalidArgumentError("the path of the file to write is empty");
  EXPECT_EQ(WriteTextFile("", "x"), expected);
  EXPECT_EQ(CheckWritable(""), expected);
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

mode_t PermissionsOf(const std::filesystem::path& path) {
  struct stat found {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 07777;
}

/// A user whom permissions bind, as they do not bind root.
class OrdinaryUser {
 public:
  OrdinaryUser() {
    if (::geteuid() == 0) {
      EXPECT_EQ(::seteuid(65534), 0);
    }
  }
  ~OrdinaryUser() { EXPECT_EQ(::seteuid(::getuid()), 0); }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;
};

TEST_F(AtomicFile, AFileThatIsWrittenAgainKeepsItsPermissions) {
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  const OrdinaryUser user;
  const std::filesystem::path path = folder_ / "own";
  for (const mode_t permissions : {0600, 0640, 0666, 0755, 04700}) {
    ASSERT_TRUE(Write(path, {"old"}).ok());
    ASSERT_EQ(::chmod(path.c_str(), permissions), 0);
    ASSERT_TRUE(Write(path, {"new"}).ok());
    EXPECT_EQ(Content(path), "new");
    EXPECT_EQ(PermissionsOf(path), permissions & 0777) << "no other user's file becomes one that runs as this one";
  }
}

TEST_F(AtomicFile, GivenPermissionsAreThoseOfANewFileAndOfOneThatIsWrittenAgain) {
  const std::filesystem::path path = folder_ / "private";
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(WriteTextFile(path, "new", {.sync = false, .permissions = 0600}).ok());
    EXPECT_EQ(PermissionsOf(path), 0600u);
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  }
}

TEST_F(AtomicFile, AFileThatMayNotBeWrittenIsRefusedAndStays) {
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  const std::filesystem::path path = folder_ / "fixed";
  const OrdinaryUser user;
  ASSERT_TRUE(Write(path, {"old"}).ok());
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  for (const absl::Status& status : {Write(path, {"new"}), CheckWritable(path)}) {
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("fixed"));
  }
  EXPECT_EQ(Content(path), "old");
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(AtomicFile, WritesToAFolderThatMayNotBeRead) {
  const std::filesystem::path inbox = folder_ / "inbox";
  std::filesystem::create_directories(inbox);
  ASSERT_EQ(::chmod(inbox.c_str(), 0333), 0);
  {
    const OrdinaryUser user;
    const absl::Status status = Write(inbox / "weights.bin", {"x"});
    EXPECT_TRUE(status.ok()) << status;
  }
  ASSERT_EQ(::chmod(inbox.c_str(), 0777), 0);
  EXPECT_EQ(Content(inbox / "weights.bin"), "x");
}

TEST_F(AtomicFile, TakesTheLongestNamesAndLeavesNothingBeside) {
  for (const std::size_t length : {239u, 240u, 255u}) {
    const std::filesystem::path path = folder_ / std::string(length, 'n');
    const absl::Status status = Write(path, {"x"});
    EXPECT_TRUE(status.ok()) << length << ": " << status;
    EXPECT_EQ(Content(path), "x");
  }
  EXPECT_FALSE(Write(folder_ / std::string(256, 'n'), {"x"}).ok());
  EXPECT_EQ(FilesInFolder(), 3u);
}

TEST(UnfinishedFiles, AreNamedByProcessAndNumber) {
  EXPECT_EQ(UnfinishedName("a.bin.tmp-12-0"), "a.bin");
  EXPECT_EQ(UnfinishedName("a.tmp-1-2.tmp-3-4"), "a.tmp-1-2");
  for (const char* name : {"a.bin", "a.tmp-", "a.tmp-1", "a.tmp-1-", "a.tmp--1", "a.tmp-1-2-3", "a.tmp-old.txt"}) {
    EXPECT_EQ(UnfinishedName(name), std::nullopt) << name;
  }
  EXPECT_TRUE(IsUnfinished("a.bin.tmp-12-0", "a.bin"));
  EXPECT_FALSE(IsUnfinished("a.bin.tmp-12-0", "a"));
  const std::string longest(255, 'n');
  EXPECT_TRUE(IsUnfinished(longest.substr(9) + ".tmp-12-0", longest));
  EXPECT_FALSE(IsUnfinished(longest.substr(10) + ".tmp-12-0", longest));
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
