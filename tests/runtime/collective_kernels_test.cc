// The CPU's collective kernels over the threads of a group, and what a Program needs of its group.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "runtime/program_binding.h"
#include "runtime/step_groups.h"
#include "tests/runtime/program_builder.h"
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

/// Counts the messages of another communicator.
class CountedMessages final : public Communicator {
 public:
  explicit CountedMessages(Communicator& sender) : sender_(sender) {}
  int count() const { return count_; }

  std::string_view transport() const override { return sender_.transport(); }
  int rank() const override { return sender_.rank(); }
  int size() const override { return sender_.size(); }
  absl::Status status() const override { return sender_.status(); }
  absl::Status AllReduce(absl::Span<const ReducedPart> parts) override { return Count(sender_.AllReduce(parts)); }
  absl::Status ReduceScatter(const ReducedPart& part) override { return Count(sender_.ReduceScatter(part)); }
  absl::Status AllGather(const void* input, void* output, std::size_t bytes) override {
    return Count(sender_.AllGather(input, output, bytes));
  }
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override {
    return Count(sender_.Broadcast(data, bytes, root));
  }
  absl::Status Barrier() override { return Count(sender_.Barrier()); }

 private:
  absl::Status Count(absl::Status status) {
    ++count_;
    return status;
  }

  Communicator& sender_;
  int count_ = 0;
};

TEST(CollectiveKernels, AddAndCompareOperandsOfSeveralTypesInOneMessage) {
  for (const int size : {2, 4}) {
    const Attributes attributes = {{"processes", std::int64_t{size}}, {"bucket", std::int64_t{0}}};
    OnRanks(size, [&](Communicator& communicator) {
      const KernelSpec code{"all_reduce_max", {{DType::kI32, {}}}, {{DType::kI32, {}}}, {}, attributes};
      const KernelSpec sum{"all_reduce", {{DType::kF32, {2}}}, {{DType::kF32, {2}}}, {}, attributes};
      const auto kernel = cpu::CreateGroupKernel({{code, sum}});
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      std::int32_t largest = communicator.rank();
      float numbers[] = {1, 2};
      const void* inputs[] = {&largest, numbers};
      void* outputs[] = {&largest, numbers};
      CountedMessages counted(communicator);
      (*kernel)->Run({inputs, outputs, nullptr, &counted});
      EXPECT_EQ(counted.count(), 1);
      EXPECT_EQ(largest, size - 1);
      EXPECT_EQ(numbers[1], static_cast<float>(2 * size));
    });
  }
}

TEST(CollectiveKernels, GatherSeveralOperandsAsOneMessage) {
  for (const int size : {1, 2, 4}) {
    const Attributes attributes = {{"processes", std::int64_t{size}}};
    OnRanks(size, [&](Communicator& communicator) {
      const KernelSpec number{"all_gather", {{DType::kI32, {}}}, {{DType::kI32, {size}}}, {}, attributes};
      const KernelSpec pair{"all_gather", {{DType::kF32, {2}}}, {{DType::kF32, {size, 2}}}, {}, attributes};
      const auto kernel = cpu::CreateGroupKernel({{number, pair}});
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      const std::int32_t rank = communicator.rank();
      const float own[] = {static_cast<float>(rank), 10.0f + static_cast<float>(rank)};
      std::vector<std::int32_t> ranks(static_cast<std::size_t>(size));
      std::vector<float> pairs(2 * ranks.size());
      const void* inputs[] = {&rank, own};
      void* outputs[] = {ranks.data(), pairs.data()};
      CountedMessages counted(communicator);
      (*kernel)->Run({inputs, outputs, nullptr, &counted});
      EXPECT_EQ(counted.count(), size == 1 ? 0 : 1);
      for (std::int32_t i = 0; i < size; ++i) {
        EXPECT_EQ(ranks[static_cast<std::size_t>(i)], i);
        EXPECT_EQ(pairs[static_cast<std::size_t>(2 * i + 1)], 10.0f + static_cast<float>(i));
      }
    });
  }
}

/// How many instructions are in each message of a step of collectives, which are given with the numbers of buckets.
std::vector<std::size_t> MessageSizes(const std::vector<std::pair<const char*, std::int64_t>>& collectives) {
  runtime::ProgramBuilder builder("train_step");
  for (const auto& [kernel, bucket] : collectives) {
    const bool compares = std::string_view(kernel) == "all_reduce_max";
    const TensorSpec spec{compares ? DType::kI32 : DType::kF32, {2}};
    const runtime::ValueId from = builder.Temporary(spec), to = builder.Temporary(spec);
    builder.Call(kernel, {from}, {to}, {{"processes", std::int64_t{2}}, {runtime::kBucket, bucket}});
  }
  std::vector<std::size_t> sizes;
  for (const auto& range : runtime::GroupInstructions(*builder.Build(), cpu::MayGroup)) sizes.push_back(range.count);
  return sizes;
}

TEST(GroupInstructions, MakesOneMessageOfABucket) {
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(MessageSizes({{"all_reduce_max", 0}, {"all_reduce", 0}, {"all_reduce", 0}}), (Sizes{3}));
  EXPECT_EQ(MessageSizes({{"all_reduce", 0}, {"all_reduce", 1}, {"all_reduce", 1}}), (Sizes{1, 2}))
      << "buckets that stand side by side stay apart";
  EXPECT_EQ(MessageSizes({{"all_gather", 0}, {"all_gather", 0}, {"all_reduce", 0}}), (Sizes{2, 1}))
      << "a gather is another call";
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

// What was made from the state before must be made again.
TEST(CpuSteps, ThatFailBetweenTwoInstructionsHaveWrittenTheirState) {
  runtime::ProgramBuilder builder("train_step");
  const TensorSpec scalar{DType::kI32, {}}, vector{DType::kF32, {2}};
  const runtime::ValueId count = builder.State("count", scalar, true), x = builder.Input("x", vector);
  builder.Call("increment", {count}, {count});
  builder.Call("all_reduce", {x}, {builder.Temporary(vector)}, {{"processes", std::int64_t{2}}});
  const auto group = std::make_shared<ThreadGroup>(2);
  group->Join(1).reset();
  runtime::StateStore state;
  const auto entry = std::make_shared<runtime::StateEntry>("count", Role::kParameter, scalar);
  ASSERT_TRUE(entry->Write(runtime::BytesOf(std::vector<std::int32_t>{5})).ok());
  ASSERT_TRUE(state.Add(entry).ok());
  const auto step = (*runtime::GetDevice("cpu"))->Load(builder.Build(), state, {.communicator = group->Join(0)});
  ASSERT_TRUE(step.ok()) << step.status();
  const std::uint64_t version = entry->version();
  const std::vector<float> rows = {1, 2};
  EXPECT_EQ((*step)->Run({runtime::BytesOf(rows)}).code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(entry->version(), version);
  EXPECT_EQ(*static_cast<const std::int32_t*>(entry->data()), 6);
}

}  // namespace
}  // namespace mpc::test
