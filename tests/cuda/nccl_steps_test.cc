// Steps of several processes on emulated GPUs: their bits, what a graph holds of NCCL, and equal calls on all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/cuda/device_choice.h"
#include "runtime/observable_step.h"
#include "tests/cuda/gpu_ranks.h"
#include "tests/cuda/step_program.h"
#include "tests/runtime/collective_checks.h"

namespace mpc::runtime {
namespace {

using test::Bytes;
using testing::Each;

Attributes OfProcesses(int count) { return {{"processes", static_cast<std::int64_t>(count)}}; }

/// A step whose inputs of these specs become their sums over all processes.
ProgramBuilder SumProgram(const GpuRank& gpu, const std::vector<TensorSpec>& specs) {
  ProgramBuilder builder("train_step");
  std::vector<ValueId> inputs, sums;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    inputs.push_back(builder.Input(absl::StrCat("x", i), specs[i]));
    sums.push_back(builder.Temporary(specs[i]));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    builder.Call("all_reduce", {inputs[i]}, {sums[i]}, OfProcesses(gpu.size()), gpu.device.get());
    builder.Output(absl::StrCat("sum", i), sums[i]);
  }
  return builder;
}

std::vector<absl::Span<const std::uint8_t>> SpansOf(const std::vector<const Bytes*>& inputs) {
  std::vector<absl::Span<const std::uint8_t>> spans;
  for (const Bytes* input : inputs) {
    spans.emplace_back(reinterpret_cast<const std::uint8_t*>(input->data()), input->size());
  }
  return spans;
}

bool HasBits(absl::Span<const std::uint8_t> output, const Bytes& expected) {
  return output.size() == expected.size() && std::memcmp(output.data(), expected.data(), output.size()) == 0;
}

std::unique_ptr<Executable> LoadOn(const GpuRank& gpu, const ProgramBuilder& builder, bool graph = true,
                                   int steps_per_launch = 1) {
  LoadOptions options{.graph = graph, .steps_per_launch = steps_per_launch, .communicator = gpu.processes};
  auto executable = gpu.device->Load(BuildFor("cuda", builder), StateStore(), options);
  EXPECT_TRUE(executable.ok()) << executable.status();
  return executable.ok() ? *std::move(executable) : nullptr;
}

/// What all ranks give to steps, and get: the same numbers are drawn in all of them.
struct DrawnSteps {
  DrawnSteps(int size, DType dtype, const std::vector<std::size_t>& elements, int steps) {
    std::mt19937 random(11);
    for (int step = 0; step < steps; ++step) {
      for (const std::size_t count : elements) {
        std::vector<Bytes> rows;
        for (int rank = 0; rank < size; ++rank) rows.push_back(test::DrawnBytes(dtype, count, random));
        sums.push_back(test::PlainReduction(dtype, Reduction::kSum, rows));
        given.push_back(std::move(rows));
      }
    }
  }
  std::vector<std::vector<Bytes>> given;  ///< of operand after operand, step after step: one of each rank
  std::vector<Bytes> sums;
};

void ExpectTheBitsOfTheTree(int size, DType dtype, const std::vector<std::size_t>& elements, bool graph,
                            emulation::Schedule schedule) {
  constexpr int kSteps = 3;
  const DrawnSteps drawn(size, dtype, elements, kSteps);
  OnGpus(
      size,
      [&](GpuRank& gpu) {
        std::vector<TensorSpec> specs;
        for (const std::size_t count : elements) specs.push_back({dtype, {static_cast<std::int64_t>(count)}});
        auto executable = LoadOn(gpu, SumProgram(gpu, specs), graph);
        ASSERT_NE(executable, nullptr);
        for (int step = 0; step < kSteps; ++step) {
          const std::size_t first = static_cast<std::size_t>(step) * elements.size();
          std::vector<const Bytes*> inputs;
          for (std::size_t i = 0; i < elements.size(); ++i) {
            inputs.push_back(&drawn.given[first + i][static_cast<std::size_t>(gpu.rank())]);
          }
          const absl::Status run = executable->Run(SpansOf(inputs));
          ASSERT_TRUE(run.ok()) << run;
          for (std::size_t i = 0; i < elements.size(); ++i) {
            EXPECT_TRUE(HasBits(executable->output(i), drawn.sums[first + i]))
                << "rank " << gpu.rank() << " of " << size << ", step " << step << ", operand " << i << " of "
                << DTypeName(dtype);
          }
        }
      },
      std::chrono::seconds(60), [&](int, GpuRankOptions& options) { options.schedule = schedule; });
}

TEST(NcclSteps, SumInABalancedTree) {
  for (const int size : {2, 4}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      // Small messages are exchanged whole. Blocks of 12,345 elements are unequal.
      ExpectTheBitsOfTheTree(size, dtype, {1, 77}, true, emulation::Schedule::kLate);
      ExpectTheBitsOfTheTree(size, dtype, {20001, 3, 12345}, true, emulation::Schedule::kLate);
    }
  }
}

TEST(NcclSteps, NeedNoGraph) {
  ExpectTheBitsOfTheTree(2, DType::kF32, {20001, 3}, false, emulation::Schedule::kLate);
  ExpectTheBitsOfTheTree(2, DType::kF32, {20001, 3}, true, emulation::Schedule::kAtOnce);
}

TEST(NcclSteps, SumInTheOrderOfNcclWhereAnyIsAllowed) {
  constexpr int kRanks = 4;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    // One message that the tree would exchange whole, and one that it would halve.
    for (const std::vector<std::size_t>& elements : {std::vector<std::size_t>{1, 77}, {20001, 3, 12345}}) {
      const DrawnSteps drawn(kRanks, dtype, elements, 1);
      std::vector<std::vector<std::string>> logs(kRanks);
      OnGpus(kRanks, [&](GpuRank& gpu) {
        gpu.AddInAnyOrder();
        std::vector<TensorSpec> specs;
        std::vector<const Bytes*> inputs;
        for (std::size_t i = 0; i < elements.size(); ++i) {
          specs.push_back({dtype, {static_cast<std::int64_t>(elements[i])}});
          inputs.push_back(&drawn.given[i][static_cast<std::size_t>(gpu.rank())]);
        }
        auto executable = LoadOn(gpu, SumProgram(gpu, specs));
        ASSERT_NE(executable, nullptr);
        const absl::Status run = executable->Run(SpansOf(inputs));
        ASSERT_TRUE(run.ok()) << run;
        for (std::size_t i = 0; i < elements.size(); ++i) {
          Bytes sum = drawn.given[i][0];
          for (int rank = 1; rank < kRanks; ++rank) {
            sum = test::PlainReduction(dtype, Reduction::kSum, {sum, drawn.given[i][static_cast<std::size_t>(rank)]});
          }
          EXPECT_TRUE(HasBits(executable->output(i), sum)) << "operand " << i << " of " << DTypeName(dtype);
        }
        EXPECT_EQ(gpu.nccl.calls("Send"), 0u);
        // The walk of all paths has one; then the graphs of two launches.
        EXPECT_EQ(gpu.nccl.calls("AllReduceSum"), 1 + 2 * elements.size());
        logs[static_cast<std::size_t>(gpu.rank())] = gpu.nccl.log();
      });
      for (const std::vector<std::string>& log : logs) EXPECT_EQ(log, logs[0]);
    }
  }
}

/// A step with all operations of several processes.
ProgramBuilder AllOperations(const GpuRank& gpu) {
  const auto size = static_cast<std::int64_t>(gpu.size());
  const TensorSpec pair{DType::kI32, {2}}, scalar{DType::kI32, {}}, long_row{DType::kF32, {16384}};
  ProgramBuilder builder("train_step");
  const ValueId codes = builder.Input("codes", pair);
  const ValueId row = builder.Input("row", long_row);
  const ValueId largest = builder.Temporary(pair);
  const ValueId gathered = builder.Temporary({DType::kI32, {size, 2}});
  const ValueId rank = builder.Temporary(scalar);
  const ValueId sum = builder.Temporary(long_row);
  const ValueId twice = builder.Temporary(long_row);
  const Attributes of_all = OfProcesses(gpu.size());
  builder.Call("all_reduce", {row}, {sum}, of_all, gpu.device.get());
  builder.Call("all_gather", {codes}, {gathered}, of_all, gpu.device.get());
  builder.Call("all_reduce_max", {codes}, {largest}, of_all, gpu.device.get());
  builder.Call("process_rank", {}, {rank}, of_all, gpu.device.get());
  builder.Call("all_reduce", {sum}, {twice}, of_all, gpu.device.get());
  for (const auto& [name, value] :
       {std::pair{"largest", largest}, {"gathered", gathered}, {"rank", rank}, {"twice", twice}}) {
    builder.Output(name, value);
  }
  return builder;
}

/// The inputs of AllOperations.
struct AllOperationsData {
  explicit AllOperationsData(int rank) : codes{rank, -rank}, row(16384, static_cast<float>(rank + 1)) {
    inputs = {BytesOf(codes), BytesOf(row)};
  }
  AllOperationsData(const AllOperationsData&) = delete;
  std::vector<std::int32_t> codes;
  std::vector<float> row;
  std::vector<absl::Span<const std::uint8_t>> inputs;
};

TEST(NcclSteps, GatherMaximaAndRanks) {
  for (const int steps_per_launch : {1, 3}) {
    OnGpus(4, [&](GpuRank& gpu) {
      auto executable = LoadOn(gpu, AllOperations(gpu), true, steps_per_launch);
      ASSERT_NE(executable, nullptr);
      const AllOperationsData data(gpu.rank());
      const std::vector<StepInputs> steps(static_cast<std::size_t>(steps_per_launch), data.inputs);
      ASSERT_TRUE(executable->RunSteps(steps).ok());
      EXPECT_EQ(ValuesOf<std::int32_t>(executable->output(0)), (std::vector<std::int32_t>{3, 0}));
      EXPECT_EQ(ValuesOf<std::int32_t>(executable->output(1)), (std::vector<std::int32_t>{0, 0, 1, -1, 2, -2, 3, -3}));
      EXPECT_EQ(ValuesOf<std::int32_t>(executable->output(2)), (std::vector<std::int32_t>{gpu.rank()}));
      EXPECT_THAT(ValuesOf<float>(executable->output(3)), Each(40.0f));
    });
  }
}

TEST(NcclSteps, ShowTheirResults) {
  OnGpus(2, [](GpuRank& gpu) {
    auto executable = LoadOn(gpu, AllOperations(gpu), /*graph=*/false);
    ASSERT_NE(executable, nullptr);
    std::vector<std::string> seen;
    const absl::Status status =
        dynamic_cast<ObservableStep&>(*executable)
            .RunObserved(AllOperationsData(gpu.rank()).inputs, [&](const ObservedResult& each) {
              const double first = each.instruction % 4 == 0 ? ValuesOf<float>(each.bytes).front()
                                                             : ValuesOf<std::int32_t>(each.bytes).front();
              seen.push_back(absl::StrCat(each.instruction, " ", each.bytes.size(), " ", first));
            });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(seen, (std::vector<std::string>{"0 65536 3", "1 16 0", "2 8 1", absl::StrCat("3 4 ", gpu.rank()),
                                              "4 65536 6"}));
  });
}

TEST(NcclSteps, AreCapturedWithEqualCallsOnAllRanks) {
  std::vector<std::vector<std::string>> logs(4);
  OnGpus(4, [&](GpuRank& gpu) {
    auto executable = LoadOn(gpu, AllOperations(gpu));
    ASSERT_NE(executable, nullptr);
    const AllOperationsData data(gpu.rank());
    // Two rounds to halve and two to gather, for each sum.
    const std::size_t groups = gpu.nccl.calls("EndGroup");
    const std::size_t sends = gpu.nccl.calls("Send");
    std::vector<std::string>& log = logs[static_cast<std::size_t>(gpu.rank())];
    log = gpu.nccl.log();
    const std::size_t nodes = executable->nodes_per_step();
    // Five places, whose begin and end are noted; 4 groups and 2 additions a sum; maxima, gather and rank; inputs and
    // two copies out.
    EXPECT_EQ(nodes, 2 * 5u + 2 * (4 + 2) + 3 + 1 + 2);
    for (int step = 0; step < 5; ++step) ASSERT_TRUE(executable->Run(data.inputs).ok());
    ASSERT_TRUE(executable->Wait().ok());
    EXPECT_EQ(gpu.nccl.calls("EndGroup"), groups) << "steps only launch what was captured";
    EXPECT_EQ(gpu.nccl.calls("Send"), sends);
    // The walk of all paths has two rounds for its sum; then the graphs of two launches.
    EXPECT_EQ(sends, 2u + 2 * (2 * 4));
    EXPECT_EQ(groups, 2u + 2 + 2 * (2 * 4 + 2));
  });
  for (const std::vector<std::string>& log : logs) EXPECT_EQ(log, logs[0]);
}

TEST(NcclSteps, SumNeighboursAsOneMessage) {
  OnGpus(2, [](GpuRank& gpu) {
    const TensorSpec row{DType::kF32, {5000}};
    const std::size_t before = gpu.nccl.calls("EndGroup");
    auto one = LoadOn(gpu, SumProgram(gpu, {row, row}));
    ASSERT_NE(one, nullptr);
    // Opening takes three groups; then one round to halve and one to gather in each of two graphs.
    EXPECT_EQ(gpu.nccl.calls("EndGroup") - before, 3u + 2 * 2);
    EXPECT_EQ(gpu.nccl.calls("Send"), 1u + 2 * 2 * 2) << "one for each operand";
  });
}

TEST(NcclSteps, SumAndCompareInOneCall) {
  OnGpus(4, [](GpuRank& gpu) {
    ProgramBuilder builder("train_step");
    const TensorSpec pair{DType::kI32, {2}}, long_row{DType::kF32, {16384}};
    const ValueId codes = builder.Input("codes", pair), row = builder.Input("row", long_row);
    const ValueId largest = builder.Temporary(pair), sum = builder.Temporary(long_row);
    builder.Call("all_reduce_max", {codes}, {largest}, OfProcesses(gpu.size()), gpu.device.get());
    builder.Call("all_reduce", {row}, {sum}, OfProcesses(gpu.size()), gpu.device.get());
    builder.Output("largest", largest);
    builder.Output("sum", sum);
    auto executable = LoadOn(gpu, builder);
    ASSERT_NE(executable, nullptr);
    const auto times = executable->RunTimed(AllOperationsData(gpu.rank()).inputs);
    ASSERT_TRUE(times.ok()) << times.status();
    EXPECT_EQ(times->size(), 1u);
    EXPECT_EQ(ValuesOf<std::int32_t>(executable->output(0)), (std::vector<std::int32_t>{3, 0}));
    EXPECT_THAT(ValuesOf<float>(executable->output(1)), Each(10.0f));
  });
}

TEST(NcclSteps, WriteSumsOverTheirOperands) {
  OnGpus(4, [](GpuRank& gpu) {
    ProgramBuilder builder("train_step");
    const TensorSpec spec{DType::kF32, {20000}};
    const ValueId row = builder.Input("row", spec);
    const ValueId work = builder.Temporary(spec);
    builder.Call("neg", {row}, {work});
    builder.Call("all_reduce", {work}, {work}, OfProcesses(gpu.size()), gpu.device.get());
    builder.Output("sum", work);
    auto executable = LoadOn(gpu, builder);
    ASSERT_NE(executable, nullptr);
    const std::vector<float> own(20000, static_cast<float>(gpu.rank()));
    const std::vector<absl::Span<const std::uint8_t>> inputs = {BytesOf(own)};
    ASSERT_TRUE(executable->Run(inputs).ok());
    EXPECT_THAT(ValuesOf<float>(executable->output(0)), Each(-6.0f));
  });
}

TEST(NcclSteps, OpenNcclOnceForAllPrograms) {
  OnGpus(2, [](GpuRank& gpu) {
    ASSERT_TRUE(gpu.device->Join(gpu.processes).ok());
    for (int i = 0; i < 2; ++i) ASSERT_NE(LoadOn(gpu, SumProgram(gpu, {kStepVector})), nullptr);
    EXPECT_EQ(gpu.nccl.calls("Create"), 1u);
    EXPECT_EQ(gpu.nccl.calls("MakeId"), gpu.rank() == 0 ? 1u : 0u);
  });
}

TEST(NcclSteps, AreTimedInstructionByInstruction) {
  OnGpus(2, [](GpuRank& gpu) {
    auto executable = LoadOn(gpu, AllOperations(gpu));
    ASSERT_NE(executable, nullptr);
    const auto times = executable->RunTimed(AllOperationsData(gpu.rank()).inputs);
    ASSERT_TRUE(times.ok()) << times.status();
    EXPECT_EQ(times->size(), 5u);
    EXPECT_THAT(ValuesOf<float>(executable->output(3)), Each(6.0f));
  });
}

TEST(NcclPlan, NeedsNoGpuAndNoNccl) {
  const auto target = *CudaDevice::ForTarget("sm_90", {.use_libraries = false});
  ProgramBuilder builder("train_step");
  const TensorSpec large{DType::kF32, {16384}};
  const ValueId x = builder.Input("x", large);
  const ValueId sum = builder.Temporary(large);
  builder.Call("all_reduce", {x}, {sum}, OfProcesses(4));
  const auto plan = target->Plan(builder.program, builder.program.step().instructions[0]);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->workspace_bytes, 16384u * 4 / 2) << "what the first round receives";
  EXPECT_EQ(target->Join(nullptr).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(GpuChoice, IsTheLocalRankUnlessOneIsShown) {
  const auto choose = [](int count, const char* local_rank) {
    return ChooseGpu(count, [local_rank](const char* name) -> const char* {
      const std::string variable = name;
      if (variable == "LOCAL_RANK" || variable == "RANK") return local_rank;
      if (variable == "LOCAL_WORLD_SIZE" || variable == "WORLD_SIZE") return "4";
      if (variable == "MASTER_ADDR") return "127.0.0.1";
      if (variable == "MASTER_PORT") return "29500";
      return nullptr;
    });
  };
  EXPECT_EQ(choose(4, "2").value(), 2);
  EXPECT_EQ(choose(1, "2").value(), 0);
  const absl::Status none = choose(2, "3").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.message()),
              testing::HasSubstr("local rank 3 of 4 has no GPU: CUDA_VISIBLE_DEVICES shows 2"));
  EXPECT_FALSE(choose(2, "two").ok());
  EXPECT_EQ(ChooseGpu(8, [](const char*) -> const char* { return nullptr; }).value(), 0);
}

}  // namespace
}  // namespace mpc::runtime
