// Choosing kernels by timing them, and remembering what was chosen.
#include "runtime/cuda/kernel_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cuda/registry.h"
#include "kernels/float16.h"
#include "tests/cuda/emulated_device.h"
#include "tests/cuda/step_program.h"

namespace mpc::runtime {
namespace {

using cuda::KernelOperands;
using cuda::LaunchQueue;

const KernelSpec kSpec{"matmul", {{DType::kF16, {64, 64}}, {DType::kI32, {3}}}, {{DType::kF16, {64, 64}}}, {}, {}};

/// A kernel that copies its first operand `times` times, or cannot be made or run.
absl::StatusOr<std::unique_ptr<cuda::Kernel>> MakeCopies(const std::string& choice) {
  if (choice == "missing") return absl::FailedPreconditionError("not on this device");
  const int times = choice == "fast" ? 1 : 500;
  const bool fails = choice == "fails";
  return cuda::MakeKernel([times, fails](const KernelOperands& operands, LaunchQueue& queue) {
    if (fails) return absl::InternalError("cannot run");
    for (int i = 0; i < times; ++i) {
      if (absl::Status status = queue.Copy(operands.outputs[0], operands.inputs[0], 64 * 64 * 2); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  });
}

TEST(FastestChoice, IsTheOneThatTakesLeastTimeAmongThoseThatRun) {
  for (const emulation::Schedule schedule : {emulation::Schedule::kLate, emulation::Schedule::kAtOnce}) {
    emulation::EmulatedApi api({.schedule = schedule});
    auto context = *CudaContext::Create(api, false);
    EXPECT_EQ(FastestChoice(*context, kSpec, {"missing", "slow", "fast", "fails"}, MakeCopies), "fast");
    EXPECT_EQ(FastestChoice(*context, kSpec, {"missing", "fails"}, MakeCopies), "");
    context.reset();
    EXPECT_THAT(api.Problems(), testing::IsEmpty());
    EXPECT_THAT(api.Alive(), testing::IsEmpty());
  }
}

TEST(FastestChoice, GivesEverythingBackWhenMemoryRunsOut) {
  emulation::EmulatedApi api({.memory_bytes = 10000});
  auto context = *CudaContext::Create(api, false);
  EXPECT_EQ(FastestChoice(*context, kSpec, {"slow", "fast"}, MakeCopies), "") << "left to the heuristics";
  EXPECT_EQ(api.device_bytes_used(), 0u);
}

TEST(TimeKernel, RunsOnRandomNumbersAndOnIndicesInRange) {
  emulation::EmulatedApi api({.schedule = emulation::Schedule::kAtOnce});
  auto context = *CudaContext::Create(api, false);
  const KernelSpec spec{"gather", {{DType::kF32, {41, 7}}, {DType::kF16, {50}}, {DType::kI32, {9}}}, {}, {}, {}};
  std::vector<float> wide;
  std::vector<Half> low;
  std::vector<std::int32_t> indices;
  const auto kernel = cuda::MakeKernel([&](const KernelOperands& operands, LaunchQueue&) {
    // An emulated device's memory can be read here, and its work is done at once.
    wide.assign(static_cast<const float*>(operands.inputs[0]), static_cast<const float*>(operands.inputs[0]) + 287);
    low.assign(static_cast<const Half*>(operands.inputs[1]), static_cast<const Half*>(operands.inputs[1]) + 50);
    indices.assign(static_cast<const std::int32_t*>(operands.inputs[2]),
                   static_cast<const std::int32_t*>(operands.inputs[2]) + 9);
    return absl::OkStatus();
  });
  ASSERT_TRUE(TimeKernel(*context, spec, **kernel).ok());
  EXPECT_THAT(wide, testing::Each(testing::AllOf(testing::Ge(-1.0f), testing::Lt(1.0f))));
  EXPECT_GT(std::set<float>(wide.begin(), wide.end()).size(), 280u);
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), 0.9f);
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), -0.9f);
  std::set<float> of_low;
  for (const Half value : low) of_low.insert(static_cast<float>(value));
  EXPECT_GT(of_low.size(), 40u);
  EXPECT_NE(static_cast<float>(low[0]), wide[0]) << "each operand has numbers of its own";
  EXPECT_THAT(indices, testing::Each(0));
}

class ChoiceCacheFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string Content() const {
    std::ifstream file(path_);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  }
  const std::string path_ = testing::TempDir() + "/mpc_choices_" + std::to_string(::getpid());
};

TEST_F(ChoiceCacheFile, KeepsChoicesFromRunToRun) {
  ChoiceCache first(path_);
  EXPECT_EQ(first.Find("matmul"), "");
  first.Set("matmul", "algorithm 7");
  ASSERT_TRUE(first.Write().ok());
  ChoiceCache second(path_);
  EXPECT_EQ(second.Find("matmul"), "algorithm 7");
  second.Set("conv2d", "engine 3, tile 2");
  // Another process writes meanwhile: nothing is lost.
  first.Set("conv2d_grad", "own");
  ASSERT_TRUE(first.Write().ok());
  ASSERT_TRUE(second.Write().ok());
  const ChoiceCache third(path_);
  EXPECT_EQ(third.Find("matmul"), "algorithm 7");
  EXPECT_EQ(third.Find("conv2d"), "engine 3, tile 2");
  EXPECT_EQ(third.Find("conv2d_grad"), "own");
}

TEST_F(ChoiceCacheFile, ThatIsDamagedIsMadeAnew) {
  ChoiceCache cache(path_);
  cache.Set("matmul", "algorithm 7");
  ASSERT_TRUE(cache.Write().ok());
  const std::string good = Content();
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    std::ofstream(path_, std::ios::trunc) << bad;
    EXPECT_EQ(ChoiceCache(path_).Find("matmul"), "") << "byte " << i;
    std::ofstream(path_, std::ios::trunc) << good.substr(0, i);
    EXPECT_EQ(ChoiceCache(path_).Find("matmul"), "") << "cut at " << i;
  }
  ChoiceCache again(path_);
  again.Set("matmul", "algorithm 7");
  ASSERT_TRUE(again.Write().ok());
  EXPECT_EQ(Content(), good);
}

TEST_F(ChoiceCacheFile, IsWrittenWhereSomethingIsNew) {
  ChoiceCache cache(path_);
  ASSERT_TRUE(cache.Write().ok());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "nothing to say";
  cache.Set("matmul", "algorithm 7");
  ASSERT_TRUE(cache.WriteEvery(std::chrono::hours(1)).ok());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "later";
  ASSERT_TRUE(cache.WriteEvery(std::chrono::seconds(0)).ok());
  EXPECT_EQ(ChoiceCache(path_).Find("matmul"), "algorithm 7");
  std::filesystem::remove(path_);
  ASSERT_TRUE(cache.Write().ok());
  EXPECT_FALSE(std::filesystem::exists(path_)) << "it was written";
}

TEST_F(ChoiceCacheFile, ThatIsAFolderIsAnErrorThatNamesIt) {
  ASSERT_TRUE(std::filesystem::create_directory(path_));
  ChoiceCache cache(path_);
  cache.Set("matmul", "own");
  EXPECT_THAT(std::string(cache.Write().message()), testing::HasSubstr(path_));
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(ChoiceCacheFile, WithoutAPathLivesInMemoryAlone) {
  ChoiceCache cache("");
  cache.Set("matmul", "own");
  EXPECT_EQ(cache.Find("matmul"), "own");
  EXPECT_TRUE(cache.Write().ok());
}

TEST(CudaPlan, KeepsTheChoiceThatTheProgramMade) {
  EmulatedDevice gpu;
  ProgramBuilder builder("product");
  const TensorSpec matrix{DType::kF32, {4, 4}};
  const ValueId a = builder.Input("a", matrix);
  const ValueId product = builder.Temporary(matrix);
  builder.Call("matmul", {a, a}, {product});
  const auto plan = gpu->Plan(builder.program, builder.program.instructions[0]);
  ASSERT_TRUE(plan.ok()) << plan.status();
  // Without libraries there is one kernel and nothing to choose or to time.
  const auto tuned = gpu->Plan(builder.program, builder.program.instructions[0], {.tune = true});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->choice, plan->choice);
}

TEST(CudaPlan, TimingNeedsTheDevice) {
  const auto target = *CudaDevice::ForTarget("sm_90", {.use_libraries = false});
  const auto program = BuildFor("cuda", StepProgram());
  const absl::Status status = target->Plan(*program, program->instructions[0], {.tune = true}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("for a GPU that is here"));
}

}  // namespace
}  // namespace mpc::runtime
