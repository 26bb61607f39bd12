#include "tests/compiler/codegen/loaded_fusions.h"

#include <cstring>
#include <string>
#include <utility>

#include "compiler/codegen/object_code.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

namespace mpc::test {
namespace {

absl::Status Internal(llvm::Error error) { return absl::InternalError(llvm::toString(std::move(error))); }

llvm::orc::SymbolMap SymbolsOf(llvm::orc::LLJIT& jit, llvm::ArrayRef<ProvidedFunction> provided) {
  llvm::orc::SymbolMap symbols;
  const auto define = [&](llvm::StringRef name, void* function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported};
  };
  define("memcpy", reinterpret_cast<void*>(&std::memcpy));
  define("memset", reinterpret_cast<void*>(&std::memset));
  for (const ProvidedFunction& function : provided) define(function.name, function.address);
  return symbols;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedFusions>> LoadedFusions::Create(llvm::ArrayRef<FusionOp> regions,
                                                                     const codegen::CodeTarget& target,
                                                                     llvm::ArrayRef<ProvidedFunction> provided) {
  std::unique_ptr<LoadedFusions> loaded(new LoadedFusions);
  llvm::LLVMContext context;
  llvm::Module module("regions", context);
  for (FusionOp region : regions) {
    llvm::Expected<codegen::FusionCode> code =
        codegen::emitFusion(region, "region" + std::to_string(loaded->regions_.size()), target, module);
    if (!code) return absl::InvalidArgumentError(llvm::toString(code.takeError()));
    loaded->regions_.push_back({*std::move(code), {}});
  }
  codegen::AssemblyTimes times;
  auto object = codegen::toObject(module, target, times);
  if (!object) return Internal(object.takeError());
  if (absl::Status status = loaded->Load(*object, provided); !status.ok()) return status;
  return loaded;
}

absl::Status LoadedFusions::Load(llvm::ArrayRef<std::uint8_t> object, llvm::ArrayRef<ProvidedFunction> provided) {
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return Internal(jit.takeError());
  jit_ = std::move(*jit);
  if (llvm::Error error = jit_->getMainJITDylib().define(llvm::orc::absoluteSymbols(SymbolsOf(*jit_, provided)))) {
    return Internal(std::move(error));
  }
  const llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
  if (llvm::Error error = jit_->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(bytes))) {
    return Internal(std::move(error));
  }
  for (LoadedFusion& region : regions_) {
    for (const codegen::Stage& stage : region.code.stages) {
      auto address = jit_->lookup(stage.function);
      if (!address) return Internal(address.takeError());
      region.functions.push_back(address->toPtr<LoadedFusion::Function>());
    }
  }
  return absl::OkStatus();
}

LoadedFusions::~LoadedFusions() = default;

}  // namespace mpc::test
