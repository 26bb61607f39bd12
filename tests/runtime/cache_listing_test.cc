// The last-level caches that Linux lists, of machines that are made up.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/cpu/cpu_features.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::runtime {
namespace {

/// A folder as /sys/devices/system/cpu.
class Listing {
 public:
  /// Cache `index` of `processor`, with what its files say.
  void Add(int processor, int index, const std::string& size, const std::string& sharing) const {
    const std::string cache = folder_ / absl::StrCat("cpu", processor, "/cache/index", index);
    std::filesystem::create_directories(cache);
    std::ofstream(cache + "/size") << size << "\n";
    std::ofstream(cache + "/shared_cpu_list") << sharing << "\n";
  }
  std::size_t BytesOf(const std::vector<int>& processors) const { return ListedCacheBytes(folder_.path(), processors); }

 private:
  testing::TemporaryFolder folder_;
};

constexpr std::size_t kKibi = 1024;

/// Two packages of two processors each, with caches of their own and one that each package shares.
class TwoPackages : public Listing {
 public:
  TwoPackages() {
    for (const int processor : {0, 1, 2, 3}) {
      const std::string own = absl::StrCat(processor);
      Add(processor, 0, "48K", own);
      Add(processor, 1, "32K", own);
      Add(processor, 2, "2048K", own);
      Add(processor, 3, "32768K", processor < 2 ? "0-1" : "2-3");
    }
  }
};

TEST(ListedCaches, CountOnceHoweverManyProcessorsShareThem) {
  const TwoPackages listing;
  EXPECT_EQ(listing.BytesOf({0}), 32768 * kKibi);
  EXPECT_EQ(listing.BytesOf({0, 1}), 32768 * kKibi);
}

TEST(ListedCaches, OfSeveralPackagesAddUp) {
  const TwoPackages listing;
  EXPECT_EQ(listing.BytesOf({1, 2}), 2 * 32768 * kKibi);
  EXPECT_EQ(listing.BytesOf({0, 1, 2, 3}), 2 * 32768 * kKibi);
}

TEST(ListedCaches, AreThoseOfTheLastLevelWhateverThatIs) {
  Listing listing;
  for (const int processor : {0, 1}) {
    const std::string own = absl::StrCat(processor);
    listing.Add(processor, 0, "32K", own);
    listing.Add(processor, 1, "32K", own);
    listing.Add(processor, 2, "512K", own);
  }
  EXPECT_EQ(listing.BytesOf({0, 1}), 2 * 512 * kKibi) << "each processor has its own";
}

TEST(ListedCaches, MayDifferBetweenProcessors) {
  Listing listing;
  listing.Add(0, 0, "12288K", "0");
  listing.Add(1, 0, "2048K", "1-2");
  listing.Add(2, 0, "2048K", "1-2");
  EXPECT_EQ(listing.BytesOf({0, 1, 2}), (12288 + 2048) * kKibi);
}

TEST(ListedCaches, AreNoneWhereNoneIsListed) {
  const TwoPackages listing;
  EXPECT_EQ(Listing().BytesOf({0, 1}), 0u);
  EXPECT_EQ(listing.BytesOf({}), 0u);
  EXPECT_EQ(listing.BytesOf({7}), 0u);
  EXPECT_EQ(listing.BytesOf({3, 7}), 32768 * kKibi);
}

TEST(ListedCaches, EndWhereTheListingCannotBeRead) {
  Listing listing;
  listing.Add(0, 0, "48K", "0");
  listing.Add(0, 1, "all of it", "0");
  listing.Add(0, 2, "2048K", "0");
  EXPECT_EQ(listing.BytesOf({0}), 48 * kKibi);
  listing.Add(1, 0, "2M", "1");
  EXPECT_EQ(listing.BytesOf({1}), 0u) << "Linux lists KiB";
}

TEST(LastLevelCaches, OfThisMachineAreOfSomeSize) {
  EXPECT_GE(LastLevelCacheBytes(), 64 * kKibi);
  EXPECT_EQ(LastLevelCacheBytes(), LastLevelCacheBytes());
}

}  // namespace
}  // namespace mpc::runtime
