// Kernels that a Program carries with it: "generated.<name>".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cuda/emulated_device.h"
#include "tests/cuda/step_program.h"

namespace mpc::runtime {
namespace {

using testing::HasSubstr;

/// y = 2 x of kStepVector, all by the launch's one thread; keeps the workspace's address to show that it has one.
void Double(const void*, const void* const* arguments) {
  const float* x = *static_cast<const float* const*>(arguments[0]);
  float* y = *static_cast<float* const*>(arguments[1]);
  float* workspace = *static_cast<float* const*>(arguments[2]);
  for (int i = 0; i < 5; ++i) workspace[i] = x[i] + x[i];
  for (int i = 0; i < 5; ++i) y[i] = workspace[i];
}

/// y += x, after the stage before it.
void AddAgain(const void*, const void* const* arguments) {
  const float* x = *static_cast<const float* const*>(arguments[0]);
  float* y = *static_cast<float* const*>(arguments[1]);
  for (int i = 0; i < 5; ++i) y[i] += x[i];
}

/// Two stages of this many blocks and threads.
Attributes Shape(std::int64_t blocks, std::int64_t threads) {
  return {{"blocks", std::vector<std::int64_t>{blocks, blocks}},
          {"threads", std::vector<std::int64_t>{threads, threads}},
          {"shared_bytes", std::vector<std::int64_t>{0, 0}}};
}

ProgramBuilder GeneratedProgram() {
  ProgramBuilder builder("predict");
  const ValueId x = builder.Input("x", kStepVector);
  const ValueId y = builder.Temporary(kStepVector);
  const ValueId scratch = builder.Temporary(kStepVector);
  builder.Call("generated.double", {x}, {y}, Shape(1, 1));
  builder.program.step().instructions[0].workspace_offset = builder.program.values[scratch].offset;
  builder.program.step().instructions[0].workspace_bytes = 64;
  builder.program.code.push_back({"fused", "cubin", {1, 2, 3}, {"double_0", "double_1"}});
  builder.Output("y", y);
  return builder;
}

TEST(GeneratedCode, RunsItsStagesInOrder) {
  EmulatedDevice gpu;
  gpu.api.AddCode("double_0", {nullptr, Double});
  gpu.api.AddCode("double_1", {nullptr, AddAgain});
  StateStore store;
  auto executable = gpu->Load(BuildFor("cuda", GeneratedProgram()), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  ASSERT_TRUE((*executable)->Run({BytesOf(std::vector<float>{1, 2, 3, 4, 5})}).ok());
  EXPECT_EQ(ValuesOf<float>((*executable)->output(0)), (std::vector<float>{3, 6, 9, 12, 15}));
}

TEST(GeneratedCode, ThatCannotBeLoadedSaysWhy) {
  EmulatedDevice gpu;
  StateStore store;
  const auto load = [&](const ProgramBuilder& builder) {
    const absl::Status status = gpu->Load(BuildFor("cuda", builder), store).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(load(GeneratedProgram()), HasSubstr("code \"fused\": cudaErrorSymbolNotFound: \"double_0\""));
  gpu.api.AddCode("double_0", {nullptr, Double});
  gpu.api.AddCode("double_1", {nullptr, AddAgain});
  ProgramBuilder builder = GeneratedProgram();
  builder.program.code[0].bytes.clear();
  EXPECT_THAT(load(builder), HasSubstr("code \"fused\" has no bytes"));
  builder = GeneratedProgram();
  builder.program.code[0].format = "elf";
  EXPECT_THAT(load(builder), HasSubstr("is in format \"elf\"; a GPU takes \"cubin\" and \"ptx\""));
  builder = GeneratedProgram();
  builder.program.code.push_back(builder.program.code[0]);
  EXPECT_THAT(load(builder), HasSubstr("another blob has a kernel \"double_0\" too"));
  builder = GeneratedProgram();
  builder.program.code.clear();
  EXPECT_THAT(
      load(builder),
      HasSubstr("instruction 0 (generated.double in test): no code of the program has a function \"double_0\""));
  builder = GeneratedProgram();
  builder.program.step().instructions[0].attributes = Shape(1, 2000);
  EXPECT_THAT(load(builder), HasSubstr("threads = [2000, 2000]"));
}

}  // namespace
}  // namespace mpc::runtime
