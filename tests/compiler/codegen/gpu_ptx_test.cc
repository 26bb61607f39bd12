// The PTX of regions: complete, without contraction, and taken by ptxas without spills.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/ptx.h"
#include "llvm/IR/IRBuilder.h"
#include "tests/compiler/codegen/region_run.h"

namespace mpc::test {
namespace {

// All regions of one type in one module: ptxas takes longer to start than to assemble one of them.
std::string PtxOf(const std::string& architecture, const std::string& type) {
  const codegen::CodeTarget target = llvm::cantFail(codegen::gpuTarget(architecture));
  llvm::LLVMContext context;
  llvm::Module module("regions", context);
  for (const auto& [rows, columns] : {std::pair{8192, 768}, {32, 10}, {100000, 64}, {512, 50257}, {333, 1000}}) {
    for (const auto& make : {ElementwiseRegions, ReducingRegions}) {
      for (const RegionCase& region : make(rows, columns, type)) {
        const ParsedRegion parsed(region);
        if (!parsed.fusion) continue;
        llvm::Expected<codegen::RegionCode> code = codegen::emitRegion(parsed.fusion, region.name, target, module);
        EXPECT_TRUE(static_cast<bool>(code)) << region.name << ": " << llvm::toString(code.takeError());
      }
    }
  }
  codegen::AssemblyTimes times;
  llvm::Expected<std::string> ptx = codegen::toPtx(module, target, times);
  EXPECT_TRUE(static_cast<bool>(ptx)) << llvm::toString(ptx.takeError());
  return ptx ? *std::move(ptx) : std::string();
}

std::string Ptxas() {
  for (const char* path : {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"}) {
    if (std::filesystem::exists(path)) return path;
  }
  return std::system("command -v ptxas >/dev/null 2>&1") == 0 ? "ptxas" : "";
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
  const std::string ptxas = Ptxas();
  if (ptxas.empty()) GTEST_SKIP() << "ptxas is not installed";
  const auto& [architecture, type] = GetParam();
  const std::filesystem::path folder = testing::TempDir();
  const std::string stem = (folder / ("regions_" + architecture + "_" + type)).string();
  std::ofstream(stem + ".ptx") << PtxOf(architecture, type);
  const std::string command =
      ptxas + " -v -arch=" + architecture + " -o /dev/null " + stem + ".ptx > " + stem + ".log 2>&1";
  const int result = std::system(command.c_str());
  std::stringstream log;
  log << std::ifstream(stem + ".log").rdbuf();
  ASSERT_EQ(result, 0) << command << "\n" << log.str();

  // ptxas info : Compiling entry function 'x' for 'sm_90' / 0 bytes stack frame, 0 bytes spill stores, ... / Used 32
  // ...
  std::string line, kernel, widest;
  int kernels = 0, most_registers = 0;
  const std::regex entry("entry function '([^']+)'"), frame(R"((\d+) bytes stack frame, (\d+) bytes spill stores)"),
      used(R"(Used (\d+) registers)");
  while (std::getline(log, line)) {
    std::smatch match;
    if (std::regex_search(line, match, entry)) {
      kernel = match[1];
      ++kernels;
    } else if (std::regex_search(line, match, frame)) {
      EXPECT_EQ(match[1], "0") << "stack of " << kernel;
      EXPECT_EQ(match[2], "0") << "spills of " << kernel;
    } else if (std::regex_search(line, match, used) && std::stoi(match[1]) > most_registers) {
      most_registers = std::stoi(match[1]);
      widest = kernel;
    }
  }
  EXPECT_GT(kernels, 0);
  RecordProperty("kernels", kernels);
  RecordProperty("most_registers", most_registers);
  std::printf("%s %s: %d kernels, at most %d registers (%s)\n", architecture.c_str(), type.c_str(), kernels,
              most_registers, widest.c_str());
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
