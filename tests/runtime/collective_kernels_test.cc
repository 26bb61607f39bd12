// The CPU's collective kernels over the threads of a group, and what a Program needs of its group.
#include <gtest/gtest.h>

#include "kernels/cpu/kernel.h"
#include "runtime/program_binding.h"
#include "tests/runtime/thread_communicator.h"

namespace mpc::test {
namespace {

using runtime::Instruction;
using runtime::Program;

const Attributes kOfFour = {{"processes", std::int64_t{4}}};

/// Runs the kernel of `spec` on one operand.
template <typename T>
std::vector<T> RunOne(const KernelSpec& spec, Communicator& communicator, std::vector<T> input) {
  const auto kernel = cpu::CreateKernel(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  std::vector<T> output(static_cast<std::size_t>(spec.outputs[0].num_elements()));
  const void* inputs[] = {input.data()};
  void* outputs[] = {output.data()};
  (*kernel)->Run({inputs, outputs, nullptr, &communicator});
  EXPECT_TRUE(communicator.status().ok()) << communicator.status();
  return output;
}

TEST(CollectiveKernels, AddInABalancedTree) {
  // In another order 1 is lost beside 2^24.
  OnRanks(4, [](Communicator& communicator) {
    const KernelSpec spec{"all_reduce", {{DType::kF32, {2}}}, {{DType::kF32, {2}}}, {}, kOfFour};
    const float own[] = {1, 1, 0x1p24f, -0x1p24f};
    const float value = own[communicator.rank()];
    EXPECT_EQ(RunOne<float>(spec, communicator, {value, 2 * value}), (std::vector<float>{2, 4}));
  });
}

TEST(CollectiveKernels, GatherMaximaAndRanks) {
  OnRanks(4, [](Communicator& communicator) {
    const std::int32_t rank = communicator.rank();
    const TensorSpec scalar{DType::kI32, {}};
    EXPECT_EQ(RunOne<std::int32_t>({"all_gather", {scalar}, {{DType::kI32, {4}}}, {}, kOfFour}, communicator, {rank}),
              (std::vector<std::int32_t>{0, 1, 2, 3}));
    EXPECT_EQ(RunOne<std::int32_t>({"all_reduce_max", {scalar}, {scalar}, {}, kOfFour}, communicator, {-rank}),
              (std::vector<std::int32_t>{0}));
    EXPECT_EQ(RunOne<std::int32_t>({"process_rank", {}, {scalar}, {}, kOfFour}, communicator, {0}),
              (std::vector<std::int32_t>{rank}));
  });
}

TEST(CollectiveKernels, ReduceSeveralOperandsAsOneMessage) {
  OnRanks(4, [](Communicator& communicator) {
    const KernelSpec small{"all_reduce", {{DType::kF32, {1}}}, {{DType::kF32, {1}}}, {}, kOfFour};
    const KernelSpec large{"all_reduce", {{DType::kF32, {3}}}, {{DType::kF32, {3}}}, {}, kOfFour};
    ASSERT_TRUE(cpu::MayGroup("all_reduce"));
    const auto kernel = cpu::CreateGroupKernel({{small, large}});
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    float a = 1, b[] = {1, 2, 3};
    const void* inputs[] = {&a, b};
    void* outputs[] = {&a, b};
    (*kernel)->Run({inputs, outputs, nullptr, &communicator});
    EXPECT_EQ(a, 4);
    EXPECT_EQ(std::vector<float>(b, b + 3), (std::vector<float>{4, 8, 12}));
  });
}

Program ProgramOf(std::vector<std::int64_t> processes) {
  Program program;
  program.name = "train_step";
  program.sequences.resize(1);
  for (const std::int64_t count : processes) {
    Instruction& instruction = program.sequences[0].instructions.emplace_back();
    instruction.kernel = "all_reduce";
    instruction.attributes = {{"processes", count}};
  }
  return program;
}

std::string ErrorOf(const Program& program, const Communicator* communicator) {
  return std::string(runtime::CheckProcesses(program, communicator).message());
}

TEST(CheckProcesses, NamesTheNumberThatAProgramNeeds) {
  EXPECT_EQ(ErrorOf(ProgramOf({1, 1}), nullptr), "");
  EXPECT_EQ(ErrorOf(ProgramOf({4}), nullptr),
            "program \"train_step\" was compiled for 4 processes; this process trains alone: distributed::Init has not "
            "been called");
  EXPECT_EQ(ErrorOf(ProgramOf({2, 4}), nullptr),
            "train_step, instruction 1 (all_reduce) is for 4 processes, an earlier one is for 2");
  OnRanks(2, [](Communicator& communicator) {
    EXPECT_EQ(ErrorOf(ProgramOf({1, 2}), &communicator), "");
    EXPECT_EQ(ErrorOf(ProgramOf({4}), &communicator),
              "program \"train_step\" was compiled for 4 processes; this process is one of 2");
  });
}

}  // namespace
}  // namespace mpc::test
