// Timing kernels on a GPU, and what a device does with it.
#include "runtime/cuda/kernel_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
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

/// Copies its first operand `times` times, or cannot run.
std::unique_ptr<cuda::Kernel> Copies(int times, bool fails = false) {
  return *cuda::MakeKernel([times, fails](const KernelOperands& operands, LaunchQueue& queue) {
    if (fails) return absl::InternalError("cannot run");
    for (int i = 0; i < times; ++i) {
      if (absl::Status status = queue.Copy(operands.outputs[0], operands.inputs[0], 64 * 64 * 2); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  });
}

TEST(TimeKernel, IsLongerForMoreWorkAndAnErrorWhereItCannotRun) {
  for (const emulation::Schedule schedule : {emulation::Schedule::kLate, emulation::Schedule::kAtOnce}) {
    emulation::EmulatedApi api({.schedule = schedule});
    auto context = *CudaContext::Create(api, false);
    const auto slow = TimeKernel(*context, kSpec, *Copies(500));
    const auto fast = TimeKernel(*context, kSpec, *Copies(1));
    ASSERT_TRUE(slow.ok() && fast.ok()) << slow.status() << fast.status();
    EXPECT_LT(*fast, *slow);
    EXPECT_EQ(TimeKernel(*context, kSpec, *Copies(1, true)).status().message(), "cannot run");
    context.reset();
    EXPECT_THAT(api.Problems(), testing::IsEmpty());
    EXPECT_THAT(api.Alive(), testing::IsEmpty());
  }
}

TEST(TimeKernel, GivesEverythingBackWhenMemoryRunsOut) {
  emulation::EmulatedApi api({.memory_bytes = 10000});
  auto context = *CudaContext::Create(api, false);
  EXPECT_FALSE(TimeKernel(*context, kSpec, *Copies(1)).ok());
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

TEST(CudaPlan, KeepsTheChoiceThatTheProgramMade) {
  EmulatedDevice gpu;
  ProgramBuilder builder("product");
  const TensorSpec matrix{DType::kF32, {4, 4}};
  const ValueId a = builder.Input("a", matrix);
  const ValueId product = builder.Temporary(matrix);
  builder.Call("matmul", {a, a}, {product});
  const auto plan = gpu->Plan(builder.program, builder.program.step().instructions[0]);
  ASSERT_TRUE(plan.ok()) << plan.status();
  // Without libraries there is one kernel and nothing to choose or to time.
  const auto tuned = gpu->Plan(builder.program, builder.program.step().instructions[0], {.tune = true});
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(tuned->choice, plan->choice);
}

TEST(CudaPlan, TimingNeedsTheDevice) {
  const auto target = *CudaDevice::ForTarget("sm_90", {.use_libraries = false});
  const auto program = BuildFor("cuda", StepProgram());
  const absl::Status status = target->Plan(*program, program->step().instructions[0], {.tune = true}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("for a GPU that is here"));
}

}  // namespace
}  // namespace mpc::runtime
