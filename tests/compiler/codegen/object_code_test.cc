// Machine code of modules: what it may call, and how objects become one that needs no compiler.
#include "compiler/codegen/object_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "compiler/codegen/jit_loader.h"
#include "compiler/codegen/link_shared_object.h"
#include "llvm/IR/IRBuilder.h"
#include "runtime/code_loader.h"
#include "tests/compiler/codegen/example_fusions.h"

namespace mpc::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace mpc::codegen
