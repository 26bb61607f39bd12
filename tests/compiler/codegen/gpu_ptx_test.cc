// The PTX of regions: complete, without contraction, and taken by ptxas without spills.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <regex>
#include <string>
#include <vector>

#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/ptx.h"
#include "compiler/codegen/ptx_resources.h"
#include "llvm/IR/IRBuilder.h"
#include "tests/compiler/codegen/fusion_run.h"

namespace mpc::test {
namespace {

void EmitRegions(const std::vector<FusionCase>& regions, const codegen::CodeTarget& target, llvm::Module& module) {
  for (const FusionCase& region : regions) {
    const ParsedFusion parsed(region);
    if (!parsed.fusion) continue;
    llvm::Expected<codegen::FusionCode> code = codegen::emitFusion(parsed.fusion, region.name, target, module);
    EXPECT_TRUE(static_cast<bool>(code)) << region.name << ": " << llvm::toString(code.takeError());
  }
}

// All regions of one type in one module: ptxas takes longer to start than to assemble one of them.
std::string PtxOf(const std::string& architecture, const std::string& type) {
  const codegen::CodeTarget target = llvm::cantFail(codegen::gpuTarget(architecture));
  llvm::LLVMContext context;
  llvm::Module module("regions", context);
  for (const auto& [rows, columns] : {std::pair{8192, 768}, {32, 10}, {100000, 64}, {512, 50257}, {333, 1000}}) {
    for (const auto& make : {ElementwiseRegions, ReducingRegions}) {
      EmitRegions(make(rows, columns, type), target, module);
    }
  }
  codegen::AssemblyTimes times;
  llvm::Expected<std::string> ptx = codegen::toPtx(module, target, times);
  EXPECT_TRUE(static_cast<bool>(ptx)) << llvm::toString(ptx.takeError());
  return ptx ? *std::move(ptx) : std::string();
}

class GpuPtx : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(GpuPtx, LeavesNothingToOthersAndContractsNothing) {
  const auto& [architecture, type] = GetParam();
  const std::string ptx = PtxOf(architecture, type);
  EXPECT_TRUE(codegen::externNames(ptx).empty());
  // ptxas may contract and flush what says no rounding; approximations and flushing have names of their own.
  for (const char* loose : {R"(\b(add|sub|mul)\.f(32|64))", R"(\.ftz\b)", R"(\.approx\b)", R"(\bdiv\.full\b)"}) {
    std::smatch found;
    EXPECT_FALSE(std::regex_search(ptx, found, std::regex(loose))) << found.str();
  }
  EXPECT_NE(ptx.find("ld.global.v4"), std::string::npos) << "16 bytes a thread";
}

TEST_P(GpuPtx, IsAssembledWithoutSpills) {
  llvm::Expected<std::string> ptxas = codegen::findPtxas();
  if (!ptxas) GTEST_SKIP() << llvm::toString(ptxas.takeError());
  const auto& [architecture, type] = GetParam();
  const std::string ptx = PtxOf(architecture, type);
  auto kernels = codegen::assembledResources(ptx, architecture, *ptxas);
  ASSERT_TRUE(static_cast<bool>(kernels)) << llvm::toString(kernels.takeError());
  const llvm::StringMap<std::int64_t> instructions = codegen::instructionCounts(ptx);
  EXPECT_GT(kernels->size(), 0u);
  EXPECT_EQ(kernels->size(), instructions.size());
  std::string widest;
  std::int64_t most_registers = 0;
  for (const auto& kernel : *kernels) {
    const codegen::KernelResources& takes = kernel.second;
    EXPECT_EQ(takes.stack_bytes, 0) << kernel.first().str();
    EXPECT_EQ(takes.spill_bytes, 0) << kernel.first().str();
    EXPECT_GT(takes.registers, 0) << kernel.first().str();
    EXPECT_GT(instructions.lookup(kernel.first()), 0) << kernel.first().str();
    if (takes.registers <= most_registers) continue;
    most_registers = takes.registers;
    widest = kernel.first().str();
  }
  std::printf("%s %s: %u kernels, at most %d registers (%s)\n", architecture.c_str(), type.c_str(), kernels->size(),
              static_cast<int>(most_registers), widest.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, GpuPtx,
                         testing::Combine(testing::Values("sm_80", "sm_90"), testing::Values("f32", "f16", "bf16")),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

TEST(GpuPtxNames, ExternalFunctionsAndVariablesAreFound) {
  EXPECT_TRUE(codegen::externNames(".visible .entry f() { ret; }").empty());
  const llvm::SmallVector<std::string> names = codegen::externNames(
      ".extern .func (.param .b32 func_retval0) __nv_expf\n(\n.param .b32 a\n)\n;\n.extern .func stop ()\n;\n"
      ".extern .global .align 4 .b32 table[];\n");
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.end()),
            (std::vector<std::string>{"__nv_expf", "stop", "table"}));
}

// Indices have 64 bits there, columns and labels 32.
TEST(GpuPtxShapes, SpacesOfMoreThanABillionElements) {
  const codegen::CodeTarget target = llvm::cantFail(codegen::gpuTarget("sm_90"));
  llvm::LLVMContext context;
  llvm::Module module("regions", context);
  EmitRegions(ReducingRegions(32768, 50257, "bf16"), target, module);
  codegen::AssemblyTimes times;
  llvm::Expected<std::string> ptx = codegen::toPtx(module, target, times);
  EXPECT_TRUE(static_cast<bool>(ptx)) << llvm::toString(ptx.takeError());
}

// Code for sm_80 runs on cards that have 99 KiB of shared memory a block, and so does sm_120; sm_90 has 227 KiB.
TEST(GpuPtxShapes, LongRowsTakeTheSharedMemoryThatEveryCardHas) {
  for (const auto& [architecture, most] :
       {std::pair{"sm_80", 99u << 10}, {"sm_90", 227u << 10}, {"sm_100", 227u << 10}, {"sm_120", 99u << 10}}) {
    const codegen::CodeTarget target = llvm::cantFail(codegen::gpuTarget(architecture));
    unsigned largest = 0;
    for (const std::int64_t columns : {20'000, 30'592, 50'257}) {
      for (const char* type : {"f32", "bf16"}) {
        for (const FusionCase& region : ReducingRegions(4096, columns, type)) {
          llvm::LLVMContext context;
          llvm::Module module("regions", context);
          const ParsedFusion parsed(region);
          if (!parsed.fusion) continue;
          const codegen::FusionCode code = llvm::cantFail(codegen::emitFusion(parsed.fusion, "region", target, module));
          for (const codegen::Stage& stage : code.stages) largest = std::max(largest, stage.shared_bytes);
        }
      }
    }
    EXPECT_LE(largest, most) << architecture;
    EXPECT_GT(largest, most / 2) << architecture << ": some region keeps a row or sums there";
  }
}

TEST(GpuPtxResources, AreReadFromTheLogOfPtxas) {
  const llvm::StringMap<codegen::KernelResources> kernels = codegen::parsePtxasLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a_0' for 'sm_90'\n"
      "ptxas info    : Function properties for a_0\n"
      "    48 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
      "ptxas info    : Used 64 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'a_1' for 'sm_90'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, 400 bytes cmem[0]\n");
  ASSERT_EQ(kernels.size(), 2u);
  const codegen::KernelResources first = kernels.lookup("a_0"), second = kernels.lookup("a_1");
  EXPECT_EQ(first.registers, 64);
  EXPECT_EQ(first.stack_bytes, 48);
  EXPECT_EQ(first.spill_bytes, 32);
  EXPECT_EQ(first.shared_bytes, 1024);
  EXPECT_EQ(second.registers, 8);
  EXPECT_EQ(second.spill_bytes, 0);
  EXPECT_EQ(second.shared_bytes, 0);
}

TEST(GpuPtxResources, InstructionsAreCountedWithoutDirectivesAndLabels) {
  const llvm::StringMap<std::int64_t> counts = codegen::instructionCounts(
      ".version 8.0\n.visible .entry a_0(\n\t.param .u64 .ptr a_0_param_0\n)\n.maxntid 256\n{\n\t.reg .b32 \t%r<3>;\n"
      "\tmov.b32 \t%r1, 0;\n$L__BB0_1:  // loop\n\tadd.s32 \t%r1, %r1, 1;  // next;\n\t@%p1 bra \t$L__BB0_1;\n\tret;\n"
      "}\n\t// .globl a_1\n.visible .entry a_1()\n{\n\tret;\n}\n");
  EXPECT_EQ(counts.lookup("a_0"), 4);
  EXPECT_EQ(counts.lookup("a_1"), 1);
}

TEST(GpuPtxResources, WhatPtxasRefusesIsAnErrorWithItsWords) {
  llvm::Expected<std::string> ptxas = codegen::findPtxas();
  if (!ptxas) GTEST_SKIP() << llvm::toString(ptxas.takeError());
  auto kernels = codegen::assembledResources(".version 8.0\n.target sm_90\nnonsense\n", "sm_90", *ptxas);
  ASSERT_FALSE(static_cast<bool>(kernels));
  const std::string message = llvm::toString(kernels.takeError());
  EXPECT_NE(message.find("ptxas for sm_90 failed"), std::string::npos) << message;
  EXPECT_NE(message.find("nonsense"), std::string::npos) << message;
}

TEST(GpuPtxNames, AModuleThatCallsWhatAGpuLacksIsRefusedByName) {
  const codegen::CodeTarget target = llvm::cantFail(codegen::gpuTarget("sm_90"));
  llvm::LLVMContext context;
  llvm::Module module("regions", context);
  llvm::IRBuilder<> builder(context);
  auto* kernel = llvm::Function::Create(llvm::FunctionType::get(builder.getVoidTy(), false),
                                        llvm::Function::ExternalLinkage, "kernel", module);
  kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", kernel));
  builder.CreateCall(module.getOrInsertFunction("__nv_expf", builder.getVoidTy()));
  builder.CreateRetVoid();
  codegen::AssemblyTimes times;
  llvm::Expected<std::string> ptx = codegen::toPtx(module, target, times);
  ASSERT_FALSE(static_cast<bool>(ptx));
  EXPECT_NE(llvm::toString(ptx.takeError()).find("__nv_expf"), std::string::npos);
}

}  // namespace
}  // namespace mpc::test
