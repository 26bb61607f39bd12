// Choosing kernels by timing them, and remembering what was chosen.
#include "runtime/cuda/kernel_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/cuda/registry.h"
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
