// Choosing kernels by measuring them, and remembering what was chosen.
#include "runtime/kernel_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace mpc::runtime {
namespace {

/// Kernels that are not there: their times, and how often each was measured.
struct TimedKernels {
  std::map<std::string, double> microseconds;
  std::map<std::string, int> measured;

  ChoiceTimer timer() {
    return [this](const std::string& choice) -> absl::StatusOr<double> {
      ++measured[choice];
      const auto found = microseconds.find(choice);
      if (found == microseconds.end()) return absl::FailedPreconditionError("not on this device");
      return found->second;
    };
  }
};

TEST(TimeOfOneRun, IsThatOfTheBestRoundAfterWarmingUp) {
  std::vector<int> rounds;
  const auto time = TimeOfOneRun([&](int runs) -> absl::StatusOr<double> {
    rounds.push_back(runs);
    return rounds.size() == 1 ? 9e6 : 400.0 * runs + (rounds.size() == 4 ? 0 : 100);
  });
  ASSERT_TRUE(time.ok());
  EXPECT_THAT(rounds, ::testing::ElementsAre(1, 1, 4, 4, 4)) << "about 2 ms a round";
  EXPECT_DOUBLE_EQ(*time, 400);
  EXPECT_EQ(TimeOfOneRun([](int) { return absl::StatusOr<double>(absl::AbortedError("no")); }).status().message(),
            "no");
}

TEST(FastestChoice, IsTheOneThatTakesLeastTimeAmongThoseThatRun) {
  TimedKernels kernels{{{"slow", 30}, {"fast", 12.34}, {"even", 12.34}}, {}};
  EXPECT_EQ(FastestChoice({"missing", "slow", "fast", "even"}, kernels.timer()),
            (MeasuredChoice{"fast", "fast 12.3 us, even 12.3 us, slow 30.0 us"}));
  EXPECT_EQ(FastestChoice({"missing"}, kernels.timer()), MeasuredChoice());
}

TEST(KernelTuner, WarnsOnceWhereNothingCouldBeTimed) {
  TimedKernels kernels;
  KernelTuner tuner;
  ::testing::internal::CaptureStderr();
  for (int plan = 0; plan < 2; ++plan) {
    EXPECT_EQ(*tuner.Choose("matmul(..)", {"a", "b"}, {.tune = true}, kernels.timer()), MeasuredChoice());
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: none of the 2 kernels of matmul(..) could be timed, so that heuristics choose. "
            "The first, a: not on this device\n");
  kernels.microseconds = {{"b", 3}};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(tuner.Choose("add(..)", {"a", "b"}, {.tune = true}, kernels.timer())->choice, "b");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "one that runs is enough";
}

class ChoiceCacheFile : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string Content() const {
    std::ifstream file(path_);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  }
  const std::string path_ = ::testing::TempDir() + "/mpc_choices_" + std::to_string(::getpid());
};

TEST_F(ChoiceCacheFile, IsWhatATunerReadsAndWrites) {
  TimedKernels kernels{{{"a", 5}, {"b", 3}}, {}};
  const std::vector<std::string> candidates = {"a", "b"};
  const PlanOptions heuristic{.choice_cache = path_};
  const PlanOptions tuned{.tune = true, .choice_cache = path_};
  KernelTuner first;
  EXPECT_EQ(*first.Choose("conv", candidates, heuristic, kernels.timer()), MeasuredChoice()) << "nothing is known yet";
  EXPECT_TRUE(kernels.measured.empty()) << "and nothing is measured unasked";
  const MeasuredChoice expected{"b", "b 3.0 us, a 5.0 us"};
  EXPECT_EQ(*first.Choose("conv", candidates, tuned, kernels.timer()), expected);
  ASSERT_TRUE(first.WriteCache(tuned).ok());

  kernels = {};
  KernelTuner second;
  EXPECT_EQ(*second.Choose("conv", candidates, tuned, kernels.timer()), expected);
  EXPECT_EQ(*second.Choose("conv", candidates, heuristic, kernels.timer()), expected);
  EXPECT_EQ(*second.Choose("conv", {"a"}, tuned, kernels.timer()), MeasuredChoice()) << "nothing to choose";
  EXPECT_TRUE(kernels.measured.empty());

  // What the libraries no longer offer is measured again.
  kernels.microseconds = {{"a", 5}, {"c", 9}};
  EXPECT_EQ(second.Choose("conv", {"a", "c"}, tuned, kernels.timer())->choice, "a");

  // So is what was lost with a damaged file.
  std::ofstream(path_, std::ios::trunc) << "mpc kernel choices 2 0\nconv\tc\tc 1 us\n";
  KernelTuner third;
  EXPECT_EQ(third.Choose("conv", {"a", "c"}, tuned, kernels.timer())->choice, "a");
  ASSERT_TRUE(third.WriteCache(tuned).ok());
  EXPECT_EQ(ChoiceCache(path_).Find("conv").choice, "a");
}

TEST_F(ChoiceCacheFile, KeepsChoicesFromRunToRun) {
  ChoiceCache first(path_);
  EXPECT_EQ(first.Find("matmul"), MeasuredChoice());
  first.Set("matmul", {"algorithm 7", "algorithm 7 3 us, own 4 us"});
  ASSERT_TRUE(first.Write().ok());
  ChoiceCache second(path_);
  EXPECT_EQ(second.Find("matmul"), (MeasuredChoice{"algorithm 7", "algorithm 7 3 us, own 4 us"}));
  second.Set("conv2d", {"engine 3, tile 2", ""});
  // Another process writes meanwhile: nothing is lost.
  first.Set("conv2d_grad", {"own", "own 1 us"});
  ASSERT_TRUE(first.Write().ok());
  ASSERT_TRUE(second.Write().ok());
  const ChoiceCache third(path_);
  EXPECT_EQ(third.Find("matmul").choice, "algorithm 7");
  EXPECT_EQ(third.Find("conv2d").choice, "engine 3, tile 2");
  EXPECT_EQ(third.Find("conv2d_grad").choice, "own");
}

TEST_F(ChoiceCacheFile, OfTheFirstVersionIsReadAndKept) {
  const std::string old = MPC_OLD_FILES "/choices-0.1";
  ASSERT_TRUE(std::filesystem::exists(old));
  const std::string key =
      "conv2d(tensor<4x32x32x1xf32>, tensor<16x1x3x3xf32>)->(tensor<4x32x32x16xf32>){activation=none,data_format=NHWC,"
      "dilations=[1,1],groups=1,pad_mode=same,padding=[0,0,0,0],strides=[1,1]} on AMD EPYC (25-17-1) with 2 threads, "
      "oneDNN 2.6.3, mpc 0.1.0";
  const MeasuredChoice expected{"own", "own 14.0 us, f32 nhwc 14.2 us, f32 blocked 21.4 us"};
  EXPECT_EQ(ChoiceCache(old).Find(key), expected);
  // What a later version adds leaves it as it is.
  std::filesystem::copy_file(old, path_);
  ChoiceCache cache(path_);
  cache.Set("matmul", {"own", "own 1 us"});
  ASSERT_TRUE(cache.Write().ok());
  EXPECT_EQ(ChoiceCache(path_).Find(key), expected);
}

TEST_F(ChoiceCacheFile, ThatIsDamagedIsMadeAnew) {
  ChoiceCache cache(path_);
  cache.Set("matmul", {"algorithm 7", "algorithm 7 3 us, own 4 us"});
  ASSERT_TRUE(cache.Write().ok());
  const std::string good = Content();
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    std::ofstream(path_, std::ios::trunc) << bad;
    EXPECT_EQ(ChoiceCache(path_).Find("matmul").choice, "") << "byte " << i;
    std::ofstream(path_, std::ios::trunc) << good.substr(0, i);
    EXPECT_EQ(ChoiceCache(path_).Find("matmul").choice, "") << "cut at " << i;
  }
  ChoiceCache again(path_);
  again.Set("matmul", {"algorithm 7", "algorithm 7 3 us, own 4 us"});
  ASSERT_TRUE(again.Write().ok());
  EXPECT_EQ(Content(), good);
}

TEST_F(ChoiceCacheFile, IsWrittenWhereSomethingIsNew) {
  ChoiceCache cache(path_);
  ASSERT_TRUE(cache.Write().ok());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "nothing to say";
  cache.Set("matmul", {"algorithm 7", "algorithm 7 3 us, own 4 us"});
  ASSERT_TRUE(cache.WriteEvery(std::chrono::hours(1)).ok());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "later";
  ASSERT_TRUE(cache.WriteEvery(std::chrono::seconds(0)).ok());
  EXPECT_EQ(ChoiceCache(path_).Find("matmul").choice, "algorithm 7");
  std::filesystem::remove(path_);
  ASSERT_TRUE(cache.Write().ok());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "it was written";
}

TEST_F(ChoiceCacheFile, ThatIsAFolderIsAnErrorThatNamesIt) {
  ASSERT_TRUE(std::filesystem::create_directory(path_));
  ChoiceCache cache(path_);
  cache.Set("matmul", {"own", ""});
  EXPECT_THAT(std::string(cache.Write().message()), ::testing::HasSubstr(path_));
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(ChoiceCacheFile, ThatIsOfAnotherKindIsLeftAsItIs) {
  for (const std::string notes : {"my notes", "my notes of a long day, and of another one"}) {
    std::ofstream(path_, std::ios::trunc) << notes;
    ChoiceCache cache(path_);
    cache.Set("matmul", {"own", ""});
    EXPECT_THAT(std::string(cache.Write().message()),
                ::testing::AllOf(::testing::HasSubstr(path_), ::testing::HasSubstr("\"mpc kernel choices \"")));
    EXPECT_EQ(Content(), notes);
  }
}

TEST_F(ChoiceCacheFile, WithoutAPathLivesInMemoryAlone) {
  ChoiceCache cache("");
  cache.Set("matmul", {"own", ""});
  EXPECT_EQ(cache.Find("matmul").choice, "own");
  EXPECT_TRUE(cache.Write().ok());
}

}  // namespace
}  // namespace mpc::runtime
