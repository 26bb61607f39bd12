// Code of regions: equal ones once, the same on any number of threads, kept on disk without trust.
#include "compiler/codegen/code_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "compiler/codegen/code_cache.h"
#include "compiler/codegen/jit_loader.h"
#include "compiler/codegen/link_shared_object.h"
#include "compiler/codegen/object_code.h"
#include "compiler/codegen/region_key.h"
#include "llvm/IR/IRBuilder.h"
#include "runtime/code_loader.h"
#include "runtime/file_content.h"
#include "tests/compiler/op_case_module.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc::codegen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// What `value` holds; a failure with its error, and nothing, where it holds none.
template <typename T>
T Good(llvm::Expected<T> value) {
  if (value) return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}

std::string Region(const std::string& name, const std::string& op, const std::string& attributes = "") {
  return "  %" + name + " = mpc.fusion(%x, %b) {\n  ^bb0(%a: tensor<4x8xf32>, %c: tensor<8xf32>):\n" +
         "    %s = mpc.add %a, %c " + attributes +
         " : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>\n    %t = mpc." + op +
         " %s : (tensor<4x8xf32>) -> tensor<4x8xf32>\n    mpc.yield %t : tensor<4x8xf32>\n" +
         "  } : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>\n";
}

/// Regions of a function. Two of the four compute the same.
class Regions {
 public:
  Regions() : context_(makeContext()) {
    module_ = parseModule(*context_, "func.func @f(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {\n" +
                                         Region("p", "relu") + Region("q", "relu", "{note = \"elsewhere\"}") +
                                         Region("r", "neg") + Region("s", "tanh") + "  return %s : tensor<4x8xf32>\n}");
  }
  mlir::func::FuncOp function() { return *module_->getOps<mlir::func::FuncOp>().begin(); }
  llvm::SmallVector<FusionOp> all() { return llvm::to_vector(function().getOps<FusionOp>()); }

 private:
  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

CodeTarget Host() { return Good(hostTarget()); }

GeneratedCode Generate(const std::string& cache_dir, unsigned threads = 2) {
  Regions regions;
  return Good(generateCode(regions.function(), Host(), {cache_dir, threads}));
}

std::vector<std::vector<std::uint8_t>> BytesOf(const GeneratedCode& code) {
  std::vector<std::vector<std::uint8_t>> bytes;
  for (const runtime::CodeBlob& blob : code.blobs) bytes.push_back(blob.bytes);
  return bytes;
}

TEST(CodeGenerator, EqualRegionsAreGeneratedOnce) {
  Regions regions;
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

TEST(CodeGenerator, KeysTellTargetsApart) {
  Regions regions;
  FusionOp first = regions.all()[0];
  CodeTarget narrow = Host();
  narrow.vector_bits /= 2;
  CodeTarget older = Host();
  older.cpu = "x86-64";
  CodeTarget smaller = Host();
  smaller.cache_bytes /= 2;
  CodeTarget gpu = Good(gpuTarget("sm_90"));
  const std::string key = regionKey(first, Host());
  EXPECT_EQ(key, regionKey(first, Host()));
  for (const CodeTarget& other : {narrow, older, smaller, gpu}) EXPECT_NE(key, regionKey(first, other));
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
  Regions regions;
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
  Regions regions;
  const GeneratedCode code = Good(generateCode(regions.function(), Good(gpuTarget("sm_80")), {}));
  ASSERT_THAT(code.blobs, SizeIs(3));
  const std::string text(code.blobs[0].bytes.begin(), code.blobs[0].bytes.end());
  EXPECT_THAT(text, HasSubstr(".target sm_80"));
  EXPECT_THAT(text, HasSubstr(code.blobs[0].kernels[0]));
  EXPECT_EQ(code.blobs[0].format, "ptx");
  EXPECT_THAT(llvm::toString(gpuTarget("sm_70").takeError()), HasSubstr("'sm_70' is no architecture"));
}

TEST(ObjectCode, NamesTheFunctionsThatNobodyProvides) {
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  llvm::IRBuilder<> builder(context);
  llvm::Type* number = builder.getFloatTy();
  auto* type = llvm::FunctionType::get(number, {number}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  builder.CreateRet(builder.CreateCall(module.getOrInsertFunction("expf", type), {function->getArg(0)}));
  AssemblyTimes times;
  llvm::Expected<std::vector<std::uint8_t>> object = toObject(module, Host(), times);
  ASSERT_FALSE(static_cast<bool>(object));
  EXPECT_THAT(llvm::toString(object.takeError()),
              HasSubstr("generated code calls expf, which the runtime does not provide; it provides memcpy, memset"));
}

TEST(ObjectCode, CallsWhatTheRuntimeProvides) {
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  llvm::IRBuilder<> builder(context);
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getPtrTy(), builder.getInt64Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "clear", module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  builder.CreateMemSet(function->getArg(0), builder.getInt8(0), function->getArg(1), llvm::MaybeAlign());
  builder.CreateRetVoid();
  AssemblyTimes times;
  const runtime::CodeBlob object{"clear", "object", Good(toObject(module, Host(), times)), {"clear"}};
  registerObjectLoader();
  for (const runtime::CodeBlob& blob : {object, Good(linkSharedObject(object, "linked"))}) {
    const auto loaded = runtime::LoadCode(blob);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    std::vector<std::uint8_t> bytes(1000, 7);
    reinterpret_cast<void (*)(void*, std::int64_t)>((*loaded)->Find("clear").value())(bytes.data(), 999);
    EXPECT_EQ(bytes[0] + bytes[998], 0);
    EXPECT_EQ(bytes[999], 7);
  }
}

TEST(LinkSharedObject, MakesOneBlobThatNeedsNoCompiler) {
  const GeneratedCode code = Generate("");
  const runtime::CodeBlob linked = Good(linkSharedObject(code.blobs, "predict"));
  EXPECT_EQ(linked.format, "elf");
  EXPECT_THAT(linked.kernels, SizeIs(3));
  const auto loaded = runtime::LoadCode(linked);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (const std::string& name : linked.kernels) EXPECT_TRUE((*loaded)->Find(name).ok()) << name;
  EXPECT_EQ(linked.bytes, Good(linkSharedObject(code.blobs, "predict")).bytes);
}

TEST(LinkSharedObject, NamesTheLinkersThatItLookedFor) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const std::string message = llvm::toString(linkSharedObject(Generate("").blobs, "predict").takeError());
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(message, HasSubstr("found none of ld.lld-22, ld.lld, ld in PATH"));
}

TEST(LinkSharedObject, SaysWhatTheLinkerSays) {
  runtime::CodeBlob broken{"broken", "object", {1, 2, 3}, {}};
  EXPECT_THAT(llvm::toString(linkSharedObject(broken, "predict").takeError()), HasSubstr("failed (1): "));
}

class CodeCacheTest : public ::testing::Test {
 protected:
  std::string folder() const { return folder_ / "cache"; }
  std::vector<std::string> Entries() const {
    std::vector<std::string> entries;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) entries.push_back(entry.path());
    std::sort(entries.begin(), entries.end());
    return entries;
  }
  static void Write(const std::string& path, const std::vector<std::uint8_t>& bytes) {
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  /// Changes every entry, and expects that none is believed and all are made anew.
  void ExpectRebuilt(const std::function<void(std::vector<std::uint8_t>&)>& damage) {
    const auto good = BytesOf(Generate(folder()));
    std::vector<std::vector<std::uint8_t>> kept;
    for (const std::string& path : Entries()) {
      kept.push_back(runtime::ReadFileContent(path).value());
      std::vector<std::uint8_t> damaged = kept.back();
      damage(damaged);
      Write(path, damaged);
    }
    const GeneratedCode again = Generate(folder());
    EXPECT_EQ(again.statistics.from_cache, 0u);
    EXPECT_EQ(BytesOf(again), good);
    std::size_t i = 0;
    for (const std::string& path : Entries()) EXPECT_EQ(runtime::ReadFileContent(path).value(), kept[i++]);
    EXPECT_EQ(Generate(folder()).statistics.from_cache, 3u);
  }

  mpc::testing::TemporaryFolder folder_;
};

TEST_F(CodeCacheTest, GivesTheSecondRunWhatTheFirstMade) {
  const GeneratedCode first = Generate(folder());
  EXPECT_EQ(first.statistics.from_cache, 0u);
  EXPECT_THAT(Entries(), SizeIs(3));
  const GeneratedCode second = Generate(folder());
  EXPECT_EQ(second.statistics.from_cache, 3u);
  EXPECT_EQ(second.statistics.optimise_seconds, 0);
  EXPECT_EQ(BytesOf(first), BytesOf(second));
  Regions regions;
  const GeneratedCall call = Good(generateCode(regions.function(), Host(), {folder(), 1})).calls.at(regions.all()[0]);
  const GeneratedCall fresh = Good(generateCode(regions.function(), Host(), {"", 1})).calls.at(regions.all()[0]);
  ASSERT_EQ(call.stages.size(), fresh.stages.size());
  EXPECT_EQ(call.stages[0].function, fresh.stages[0].function);
  EXPECT_EQ(call.stages[0].blocks, fresh.stages[0].blocks);
  EXPECT_EQ(call.workspace_bytes, fresh.workspace_bytes);
}

TEST_F(CodeCacheTest, RebuildsATruncatedEntry) {
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes.resize(bytes.size() - 1); });
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes.resize(20); });
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes.clear(); });
}

TEST_F(CodeCacheTest, RebuildsAnEntryOfAnotherVersion) {
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes[7] = '9'; });
}

TEST_F(CodeCacheTest, RebuildsAnEntryWithMoreBehindIt) {
  ExpectRebuilt([](std::vector<std::uint8_t>& bytes) { bytes.push_back(0); });
}

TEST_F(CodeCacheTest, FindsNoEntryWithAFlippedBit) {
  Generate(folder());
  const CodeCache cache(folder());
  const std::string path = Entries()[0];
  const std::string key = std::filesystem::path(path).stem();
  const std::vector<std::uint8_t> good = runtime::ReadFileContent(path).value();
  ASSERT_TRUE(cache.find(key).has_value());
  for (std::size_t i = 0; i < good.size(); i += i < 200 ? 1 : 37) {
    std::vector<std::uint8_t> damaged = good;
    damaged[i] ^= 1u << (i % 8);
    Write(path, damaged);
    EXPECT_FALSE(cache.find(key).has_value()) << "byte " << i;
  }
}

TEST_F(CodeCacheTest, FindsNoEntryUnderAnotherKey) {
  Generate(folder());
  const std::vector<std::string> entries = Entries();
  std::filesystem::copy_file(entries[0], entries[1], std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Generate(folder()).statistics.from_cache, 2u);
}

TEST_F(CodeCacheTest, IsSharedByProcessesThatWriteAtOnce) {
  constexpr int kProcesses = 4;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const GeneratedCode code = Generate(folder(), 1);
      ::_exit(code.remarks.empty() && code.blobs.size() == 3 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(Entries(), SizeIs(3)) << "and nothing beside them";
  const GeneratedCode code = Generate(folder());
  EXPECT_EQ(code.statistics.from_cache, 3u);
  EXPECT_EQ(BytesOf(code), BytesOf(Generate("")));
}

TEST_F(CodeCacheTest, ThatCannotBeWrittenIsRemarkedOnce) {
  std::ofstream((folder_ / "file")) << "in the way";
  const std::string inside_a_file = (folder_ / "file") + "/cache";
  const GeneratedCode first = Generate(inside_a_file);
  EXPECT_EQ(BytesOf(first), BytesOf(Generate("")));
  EXPECT_THAT(first.remarks, ElementsAre(HasSubstr("generated code is not kept for the next run: cannot create the "
                                                   "folder '" +
                                                   inside_a_file + "'")));
  EXPECT_THAT(Generate(inside_a_file).remarks, SizeIs(0));
}

TEST(DefaultCacheDir, FollowsTheEnvironment) {
  const auto with = [](const char* chosen, const char* cache_home, const char* home) {
    const std::pair<const char*, const char*> variables[] = {
        {"MPC_CACHE_DIR", chosen}, {"XDG_CACHE_HOME", cache_home}, {"HOME", home}};
    for (const auto& [name, value] : variables) value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    return defaultCacheDir();
  };
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  const std::string before = std::getenv("MPC_CACHE_DIR") == nullptr ? "" : std::getenv("MPC_CACHE_DIR");
  EXPECT_EQ(with("/some/folder", "/cache", "/home/user"), "/some/folder");
  EXPECT_EQ(with("off", "/cache", "/home/user"), "");
  EXPECT_EQ(with(nullptr, "/cache", "/home/user"), "/cache/mpc");
  EXPECT_EQ(with(nullptr, nullptr, "/home/user"), "/home/user/.cache/mpc");
  EXPECT_EQ(with("", "", "/home/user"), "/home/user/.cache/mpc");
  EXPECT_EQ(with(nullptr, nullptr, nullptr), "");
  with(before.c_str(), nullptr, home.c_str());
}

}  // namespace
}  // namespace mpc::codegen
