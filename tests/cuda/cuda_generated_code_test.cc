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

ProgramBuilder GeneratedProgram() {
  ProgramBuilder builder("predict");
  const ValueId x = builder.Input("x", kStepVector);
  const ValueId y = builder.Temporary(kStepVector);
  const ValueId scratch = builder.Temporary(kStepVector);
  builder.Call("generated.double", {x}, {y}, {{"blocks", std::int64_t{1}}, {"threads", std::int64_t{1}}});
  builder.program.instructions[0].workspace_offset = builder.program.values[scratch].offset;
  builder.program.instructions[0].workspace_bytes = 64;
  builder.program.code.push_back({"fused", "cubin", {1, 2, 3}, {"double"}});
  builder.Output("y", y);
  return builder;
}

TEST(GeneratedCode, RunsAmongTheOtherKernels) {
  EmulatedDevice gpu;
  gpu.api.AddCode("double", {nullptr, Double});
  StateStore store;
  auto executable = gpu->Load(BuildFor("cuda", GeneratedProgram()), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  ASSERT_TRUE((*executable)->Run({BytesOf(std::vector<float>{1, 2, 3, 4, 5})}).ok());
  EXPECT_EQ(ValuesOf<float>((*executable)->output(0)), (std::vector<float>{2, 4, 6, 8, 10}));
}

TEST(GeneratedCode, ThatCannotBeLoadedSaysWhy) {
  EmulatedDevice gpu;
  StateStore store;
  const auto load = [&](const ProgramBuilder& builder) {
    const absl::Status status = gpu->Load(BuildFor("cuda", builder), store).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(load(GeneratedProgram()), HasSubstr("code \"fused\": cudaErrorSymbolNotFound: \"double\""));
  gpu.api.AddCode("double", {nullptr, Double});
  ProgramBuilder builder = GeneratedProgram();
  builder.program.code[0].bytes.clear();
  EXPECT_THAT(load(builder), HasSubstr("cudaErrorInvalidKernelImage"));
  builder = GeneratedProgram();
  builder.program.code[0].format = "elf";
  EXPECT_THAT(load(builder), HasSubstr("is in format \"elf\"; a GPU takes \"cubin\" and \"ptx\""));
  builder = GeneratedProgram();
  builder.program.code.push_back(builder.program.code[0]);
  EXPECT_THAT(load(builder), HasSubstr("another blob has a kernel \"double\" too"));
  builder = GeneratedProgram();
  builder.program.code.clear();
  EXPECT_THAT(load(builder), HasSubstr("instruction 0 (generated.double in test): no code of the program"));
  builder = GeneratedProgram();
  builder.program.instructions[0].attributes.Set("threads", std::int64_t{2000});
  EXPECT_THAT(load(builder), HasSubstr("threads = 2000"));
}

}  // namespace
}  // namespace mpc::runtime
