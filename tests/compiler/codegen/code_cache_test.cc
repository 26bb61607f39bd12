// Generated code that is kept on disk: without trust, shared by processes.
#include "compiler/codegen/code_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "runtime/file_content.h"
#include "tests/compiler/codegen/example_fusions.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::codegen {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class CodeCacheTest : public ::testing::Test {
 protected:
  std::string folder() const { return folder_ / "cache"; }
  std::vector<std::string> Entries() const {
    std::vector<std::string> entries;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) entries.push_back(entry.path());
    std::sort(entries.begin(), entries.end());
    return entries;
  }
  static void Write(const std::string& path, const std::vector<std::uint8_t>& bytes) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  /// Changes every entry, and expects that none is believed and all are made anew.
  void ExpectRebuilt(const std::function<void(std::vector<std::uint8_t>&)>& damage) {
    const auto good = BytesOf(Generate(folder()));
    std::vector<std::vector<std::uint8_t>> kept;
    for (const std::string& path : Entries()) {
      kept.push_back(runtime::ReadFileContent(path).value());
      std::vector<std::uint8_t> damaged = kept.back();
      damage(damaged);
      Write(path, damaged);
    }
    const GeneratedCode again = Generate(folder());
    EXPECT_EQ(again.statistics.from_cache, 0u);
    EXPECT_EQ(BytesOf(again), good);
    std::size_t i = 0;
    for (const std::string& path : Entries()) EXPECT_EQ(runtime::ReadFileContent(path).value(), kept[i++]);
    EXPECT_EQ(Generate(folder()).statistics.from_cache, 3u);
  }

  mpc::testing::TemporaryFolder folder_;
};

TEST_F(CodeCacheTest, GivesTheSecondRunWhatTheFirstMade) {
  const GeneratedCode first = Generate(folder());
  EXPECT_EQ(first.statistics.from_cache, 0u);
  EXPECT_THAT(Entries(), SizeIs(3));
  const GeneratedCode second = Generate(folder());
  EXPECT_EQ(second.statistics.from_cache, 3u);
  EXPECT_EQ(second.statistics.optimise_seconds, 0);
  EXPECT_EQ(BytesOf(first), BytesOf(second));
  ExampleFusions regions;
  const GeneratedCall call = Good(generateCode(regions.function(), Host(), {folder(), 1})).calls.at(regions.all()[0]);
  const GeneratedCall fresh = Good(generateCode(regions.function(), Host(), {"", 1})).calls.at(regions.all()[0]);
  ASSERT_EQ(call.stages.size(), fresh.stages.size());
  EXPECT_EQ(call.stages[0].function, fresh.stages[0].function);
  EXPECT_EQ(call.stages[0].blocks, fresh.stages[0].blocks);
  EXPECT_EQ(call.workspace_bytes, fresh.workspace_bytes);
}

TEST_F(CodeCacheTest, RebuildsATruncatedEntry) {
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes.resize(bytes.size() - 1); });
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes.resize(20); });
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes.clear(); });
}

TEST_F(CodeCacheTest, RebuildsAnEntryOfAnotherVersion) {
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes[7] = '9'; });
}

TEST_F(CodeCacheTest, RebuildsAnEntryWithMoreBehindIt) {
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes.push_back(0); });
}

TEST_F(CodeCacheTest, FindsNoEntryWithAFlippedBit) {
  Generate(folder());
  const CodeCache cache(folder());
  const std::string path = Entries()[0];
  const std::string key = std::filesystem::path(path).stem();
  const std::vector<std::uint8_t> good = runtime::ReadFileContent(path).value();
  ASSERT_TRUE(cache.find(key).has_value());
  for (std::size_t i = 0; i < good.size(); i += i < 200 ? 1 : 37) {
    std::vector<std::uint8_t> damaged = good;
    damaged[i] ^= 1u << (i % 8);
    Write(path, damaged);
    EXPECT_FALSE(cache.find(key).has_value()) << "byte " << i;
  }
}

TEST_F(CodeCacheTest, FindsNoEntryUnderAnotherKey) {
  Generate(folder());
  const std::vector<std::string> entries = Entries();
  std::filesystem::copy_file(entries[0], entries[1], std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Generate(folder()).statistics.from_cache, 2u);
}

TEST_F(CodeCacheTest, IsSharedByProcessesThatWriteAtOnce) {
  constexpr int kProcesses = 4;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const GeneratedCode code = Generate(folder(), 1);
      ::_exit(code.remarks.empty() && code.blobs.size() == 3 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(Entries(), SizeIs(3)) << "and nothing beside them";
  const GeneratedCode code = Generate(folder());
  EXPECT_EQ(code.statistics.from_cache, 3u);
  EXPECT_EQ(BytesOf(code), BytesOf(Generate("")));
}

TEST_F(CodeCacheTest, ThatCannotBeWrittenIsRemarkedOnce) {
  std::ofstream((folder_ / "file")) << "in the way";
  const std::string inside_a_file = (folder_ / "file") + "/cache";
  const GeneratedCode first = Generate(inside_a_file);
  EXPECT_EQ(BytesOf(first), BytesOf(Generate("")));
  EXPECT_THAT(first.remarks, ElementsAre(HasSubstr("generated code is not kept for the next run: cannot create the "
                                                   "folder '" +
                                                   inside_a_file + "'")));
  EXPECT_THAT(Generate(inside_a_file).remarks, SizeIs(0));
}

TEST_F(CodeCacheTest, AFolderThatOthersMayWriteIsNeitherReadNorWritten) {
  const auto good = BytesOf(Generate(folder()));
  for (const mode_t mode : {0777u, 0770u, 0702u}) {
    ASSERT_EQ(::chmod(folder().c_str(), mode), 0);
    ASSERT_EQ(::unlink(Entries()[0].c_str()), 0);
    const GeneratedCode code = Generate(folder());
    EXPECT_EQ(code.statistics.from_cache, 0u);
    EXPECT_EQ(BytesOf(code), good);
    EXPECT_THAT(Entries(), SizeIs(2)) << "nothing was written";
    // Said once a process, for the first of the modes.
    if (mode == 0777) {
      EXPECT_THAT(code.remarks,
                  ElementsAre(AllOf(HasSubstr("the folder '" + folder() + "' is not trusted with machine"),
                                    HasSubstr("others may write it (mode 0777)"))));
    }
    ASSERT_EQ(::chmod(folder().c_str(), 0755), 0);
    EXPECT_EQ(Generate(folder()).statistics.from_cache, 2u);
  }
  EXPECT_EQ(Generate(folder()).statistics.from_cache, 3u);
}

TEST_F(CodeCacheTest, AFolderOfAnotherUserIsNeitherReadNorWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  Generate(folder());
  ASSERT_EQ(::chown(folder().c_str(), 65534, 65534), 0);
  const GeneratedCode code = Generate(folder());
  EXPECT_EQ(code.statistics.from_cache, 0u);
  EXPECT_THAT(code.remarks, ElementsAre(HasSubstr("it belongs to user 65534, not to user 0")));
}

TEST_F(CodeCacheTest, AnEntryThatOthersMayHaveWrittenIsMadeAgain) {
  Generate(folder());
  ASSERT_EQ(::chmod(Entries()[0].c_str(), 0666), 0);
  EXPECT_EQ(Generate(folder()).statistics.from_cache, 2u);
  struct stat entry {};
  ASSERT_EQ(::stat(Entries()[0].c_str(), &entry), 0);
  EXPECT_EQ(entry.st_mode & 07777, 0600u);
  EXPECT_EQ(Generate(folder()).statistics.from_cache, 3u);
}

TEST(DefaultCacheDir, FollowsTheEnvironment) {
  const auto with = [](const char* chosen, const char* cache_home, const char* home) {
    const std::pair<const char*, const char*> variables[] = {
        {"MPC_CACHE_DIR", chosen}, {"XDG_CACHE_HOME", cache_home}, {"HOME", home}};
    for (const auto& [name, value] : variables) value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    return defaultCacheDir();
  };
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  const std::string before = std::getenv("MPC_CACHE_DIR") == nullptr ? "" : std::getenv("MPC_CACHE_DIR");
  EXPECT_EQ(with("/some/folder", "/cache", "/home/user"), "/some/folder");
  EXPECT_EQ(with("off", "/cache", "/home/user"), "");
  EXPECT_EQ(with(nullptr, "/cache", "/home/user"), "/cache/mpc");
  EXPECT_EQ(with(nullptr, nullptr, "/home/user"), "/home/user/.cache/mpc");
  EXPECT_EQ(with("", "", "/home/user"), "/home/user/.cache/mpc");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
  with(before.c_str(), nullptr, home.c_str());
}

}  // namespace
}  // namespace mpc::codegen
