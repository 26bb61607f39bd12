// Counts what is allocated during a step through operator new. oneDNN keeps a small table of arguments per call; its
// count must not grow with the tensors.
#include <gtest/gtest.h>

#include "runtime/code_loader.h"
#include "tests/runtime/program_builder.h"
#include "tests/support/counted_allocations.h"

namespace mpc::runtime {
namespace {

const Device& Cpu() { return **GetDevice("cpu"); }

/// Those of one step, after a first one that may set up threads.
testing::Allocations AllocationsOfAStep(Executable& executable,
                                        absl::Span<const absl::Span<const std::uint8_t>> inputs) {
  EXPECT_TRUE(executable.Run(inputs).ok());
  testing::StartCounting();
  const absl::Status status = executable.Run(inputs);
  const testing::Allocations allocations = testing::StopCounting();
  EXPECT_TRUE(status.ok());
  return allocations;
}

TEST(Allocation, AStepOfOwnKernelsAllocatesNothing) {
  const TensorSpec matrix{DType::kBF16, {300, 300}};
  const TensorSpec parameter{DType::kF32, {300, 300}};
  StateStore store;
  ProgramBuilder builder("train_step");
  for (const char* name : {"weight", "velocity"}) {
    auto entry = std::make_shared<StateEntry>(name, Role::kParameter, parameter);
    entry->MarkWritten();
    ASSERT_TRUE(store.Add(entry).ok());
  }
  const ValueId weight = builder.State("weight", parameter, true);
  const ValueId velocity = builder.State("velocity", parameter, true);
  const ValueId x = builder.Input("x", matrix);
  const float rate_value = 0.1f;
  const ValueId rate = builder.Constant({DType::kF32, {}}, &rate_value);
  const ValueId sum = builder.Temporary(matrix);
  const ValueId activated = builder.Temporary(matrix);
  const ValueId total = builder.Temporary({DType::kF32, {300}});
  builder.Call("add", {x, x}, {sum}, {}, &Cpu());
  builder.Call("relu", {sum}, {activated}, {}, &Cpu());
  builder.Call("reduce_sum", {activated}, {total}, {{"axes", std::vector<std::int64_t>{0}}}, &Cpu());
  auto shadow_entry = std::make_shared<StateEntry>("weight.bf16", Role::kDerived, matrix);
  ASSERT_TRUE(store.Add(shadow_entry).ok());
  const ValueId shadow = builder.Derived(weight, DType::kBF16, true);
  builder.Call("momentum", {weight, velocity, activated, rate}, {weight, velocity, shadow},
               {{"shadow", std::string("bf16")}}, &Cpu());
  builder.Output("total", total);
  auto executable = Cpu().Load(builder.Build(), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  const std::vector<std::uint8_t> input(matrix.bytes());
  EXPECT_EQ(AllocationsOfAStep(**executable, {BytesOf(input)}).calls, 0u);
}

/// y = 2 x, 4 numbers a block.
void Double(void* const* operands, void*, std::int64_t block) {
  const float* x = static_cast<const float*>(operands[0]) + 4 * block;
  float* y = static_cast<float*>(operands[1]) + 4 * block;
  for (int i = 0; i < 4; ++i) y[i] = 2 * x[i];
}

class DoubleCode : public LoadedCode {
 public:
  absl::StatusOr<void*> Find(const std::string&) const override { return reinterpret_cast<void*>(&Double); }
};

TEST(Allocation, GeneratedKernelsAllocateNothing) {
  RegisterCodeLoader("object", [](const CodeBlob&) { return std::make_unique<DoubleCode>(); });
  constexpr std::int64_t kBlocks = 20000;
  ProgramBuilder builder("predict");
  const ValueId x = builder.Input("x", {DType::kF32, {4 * kBlocks}});
  const ValueId y = builder.Temporary({DType::kF32, {4 * kBlocks}});
  builder.Call("generated.double", {x}, {y},
               {{"blocks", std::vector<std::int64_t>{kBlocks}},
                {"threads", std::vector<std::int64_t>{1}},
                {"shared_bytes", std::vector<std::int64_t>{0}},
                {"work", 4 * kBlocks}});
  builder.program.code.push_back({"code", "object", {1}, {"double_0"}});
  auto executable = Cpu().Load(builder.Build(), StateStore());
  ASSERT_TRUE(executable.ok()) << executable.status();
  EXPECT_EQ(AllocationsOfAStep(**executable, {BytesOf(std::vector<float>(4 * kBlocks, 1))}).calls, 0u);
}

TEST(Allocation, OneDnnAllocatesOnlyItsArgumentTables) {
  // One primitive packs the weight. The convolution is one more, or one for each of four images.
  for (const auto& [channels, primitives] : {std::pair<std::int64_t, std::size_t>{8, 2}, {64, 5}}) {
    ProgramBuilder builder("predict");
    const ValueId x = builder.Input("x", {DType::kF32, {4, 16, 16, channels}});
    const ValueId weight = builder.Input("weight", {DType::kF32, {channels, channels, 3, 3}});
    const ValueId y = builder.Temporary({DType::kF32, {4, 14, 14, channels}});
    builder.Call("conv2d", {x, weight}, {y}, {{"data_format", std::string("NHWC")}}, &Cpu());
    auto executable = Cpu().Load(builder.Build(), StateStore());
    ASSERT_TRUE(executable.ok()) << executable.status();
    const std::vector<std::uint8_t> x_bytes(builder.program.values[x].spec.bytes());
    const std::vector<std::uint8_t> weight_bytes(builder.program.values[weight].spec.bytes());
    const testing::Allocations step = AllocationsOfAStep(**executable, {BytesOf(x_bytes), BytesOf(weight_bytes)});
    RecordProperty("conv2d_allocations_" + std::to_string(channels), static_cast<int>(step.calls));
    RecordProperty("conv2d_bytes_" + std::to_string(channels), static_cast<int>(step.bytes));
    EXPECT_LE(step.calls, 12 * primitives);
    EXPECT_LE(step.bytes, 2048 * primitives);
  }
}

}  // namespace
}  // namespace mpc::runtime
