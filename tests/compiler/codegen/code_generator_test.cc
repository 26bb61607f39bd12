// Code of regions: equal ones once, the same on any number of threads.
#include "compiler/codegen/code_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/codegen/fusion_key.h"
#include "runtime/code_loader.h"
#include "tests/compiler/codegen/example_fusions.h"

namespace mpc::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(CodeGenerator, EqualRegionsAreGeneratedOnce) {
  ExampleFusions regions;
  const GeneratedCode code = Good(generateCode(regions.function(), Host(), {"", 2}));
  EXPECT_EQ(code.statistics.regions, 4u);
  EXPECT_EQ(code.statistics.distinct, 3u);
  EXPECT_EQ(code.statistics.from_cache, 0u);
  EXPECT_THAT(code.blobs, SizeIs(3));
  const auto all = regions.all();
  EXPECT_EQ(code.calls.at(all[0]).kernel, code.calls.at(all[1]).kernel) << "they differ in a note only";
  EXPECT_NE(code.calls.at(all[0]).kernel, code.calls.at(all[2]).kernel);
  EXPECT_NE(code.calls.at(all[2]).kernel, code.calls.at(all[3]).kernel);
}

TEST(CodeGenerator, PlansSayHowRegionsAreCalledAndAssembleNothing) {
  ExampleFusions regions, others;
  CodeGenerator generator(Host(), {"", 2});
  const GeneratedCode planned = Good(generator.plan(regions.function()));
  EXPECT_EQ(generator.numAssembled(), 0u);
  EXPECT_THAT(planned.blobs, SizeIs(0));
  EXPECT_EQ(planned.statistics.regions, 4u);
  const GeneratedCode made = Good(generator.generate(regions.function()));
  EXPECT_EQ(generator.numAssembled(), 3u);
  EXPECT_EQ(BytesOf(made), BytesOf(Generate("")));
  EXPECT_EQ(planned.required_cpu_features, made.required_cpu_features);
  for (FusionOp region : regions.all()) {
    const GeneratedCall &first = planned.calls.at(region), &second = made.calls.at(region);
    EXPECT_EQ(first.kernel, second.kernel);
    EXPECT_EQ(first.workspace_bytes, second.workspace_bytes);
    ASSERT_EQ(first.stages.size(), second.stages.size());
    EXPECT_EQ(first.stages[0].blocks, second.stages[0].blocks);
  }
  // Equal regions of another function are there already.
  EXPECT_EQ(BytesOf(Good(generator.generate(others.function()))), BytesOf(made));
  EXPECT_EQ(generator.numAssembled(), 3u);
}

TEST(CodeGenerator, KeysTellTargetsApart) {
  ExampleFusions regions;
  FusionOp first = regions.all()[0];
  CodeTarget narrow = Host();
  narrow.vector_bits /= 2;
  CodeTarget older = Host();
  older.cpu = "x86-64";
  CodeTarget smaller = Host();
  smaller.cache_bytes /= 2;
  CodeTarget gpu = Good(gpuTarget("sm_90"));
  EXPECT_NE(fusionKey(first, gpu), fusionKey(first, Good(gpuTarget("sm_120")))) << "less shared memory";
  EXPECT_EQ(fusionKey(first, gpu), fusionKey(first, Good(gpuTarget("sm_100")))) << "the same code";
  const std::string key = fusionKey(first, Host());
  EXPECT_EQ(key, fusionKey(first, Host()));
  for (const CodeTarget& other : {narrow, older, smaller, gpu}) EXPECT_NE(key, fusionKey(first, other));
}

TEST(CodeGenerator, MakesTheSameBytesOnAnyNumberOfThreads) {
  const auto alone = BytesOf(Generate("", 1));
  EXPECT_EQ(alone, BytesOf(Generate("", 2)));
  EXPECT_EQ(alone, BytesOf(Generate("", 8)));
}

TEST(CodeGenerator, WhatItMakesCanBeCalled) {
  const GeneratedCode code = Generate("");
  std::vector<float> x(32), b(8), y(32);
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i - 16);
  for (int i = 0; i < 8; ++i) b[i] = static_cast<float>(i);
  ASSERT_THAT(code.blobs[0].kernels, SizeIs(1));
  const auto loaded = runtime::LoadCode(code.blobs[0]);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto function =
      reinterpret_cast<void (*)(void* const*, void*, std::int64_t)>((*loaded)->Find(code.blobs[0].kernels[0]).value());
  void* const operands[] = {x.data(), b.data(), y.data()};
  ExampleFusions regions;
  const GeneratedCall call = Good(generateCode(regions.function(), Host(), {"", 1})).calls.at(regions.all()[0]);
  for (std::int64_t tile = 0; tile < call.stages[0].blocks; ++tile) function(operands, nullptr, tile);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(y[i], std::max(0.0f, x[i] + b[i % 8])) << i;
  EXPECT_EQ((*loaded)->Find("another").status().code(), absl::StatusCode::kNotFound);
}

TEST(CodeGenerator, RefusesDamagedObjects) {
  runtime::CodeBlob blob = Generate("").blobs[0];
  blob.bytes.resize(blob.bytes.size() / 2);
  EXPECT_FALSE(runtime::LoadCode(blob).ok());
  blob.bytes = {1, 2, 3};
  EXPECT_FALSE(runtime::LoadCode(blob).ok());
}

TEST(CodeGenerator, MakesPtxForAGpu) {
  ExampleFusions regions;
  const GeneratedCode code = Good(generateCode(regions.function(), Good(gpuTarget("sm_80")), {}));
  ASSERT_THAT(code.blobs, SizeIs(3));
  const std::string text(code.blobs[0].bytes.begin(), code.blobs[0].bytes.end());
  EXPECT_THAT(text, HasSubstr(".target sm_80"));
  EXPECT_THAT(text, HasSubstr(code.blobs[0].kernels[0]));
  EXPECT_EQ(code.blobs[0].format, "ptx");
  for (const char* unknown : {"sm_70", "sm_86", "sm_90a", "sm_", "120", ""}) {
    EXPECT_THAT(llvm::toString(gpuTarget(unknown).takeError()),
                HasSubstr("'" + std::string(unknown) + "' is no architecture"));
  }
}

// Drivers compile it for the GPU that they find.
TEST(CodeGenerator, MakesPtxOfHopperForLaterGpus) {
  ExampleFusions regions;
  for (const char* later : {"sm_100", "sm_110", "sm_120", "sm_130"}) {
    const GeneratedCode code = Good(generateCode(regions.function(), Good(gpuTarget(later)), {}));
    ASSERT_THAT(code.blobs, SizeIs(3));
    const std::string text(code.blobs[0].bytes.begin(), code.blobs[0].bytes.end());
    EXPECT_THAT(text, HasSubstr(".target sm_90")) << later;
    EXPECT_EQ(code.blobs[0].format, "ptx");
  }
}

}  // namespace
}  // namespace mpc::codegen
