#include "tests/compiler/codegen/emulated_region.h"

#include <cstring>
#include <utility>
#include <vector>

#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/gpu_builtins.h"
#include "compiler/codegen/object_code.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "tests/cuda_emulation/device_language.h"
#include "tests/cuda_emulation/emulator.h"

namespace mpc::test {
namespace {

unsigned Thread() { return threadIdx.x; }
void Barrier() { __syncthreads(); }
unsigned ShuffleXor(unsigned bits, unsigned mask) { return __shfl_xor_sync(~0u, bits, static_cast<int>(mask)); }
void* Shared() { return emulation::DynamicSharedStorage(); }

llvm::orc::SymbolMap Provided(llvm::orc::LLJIT& jit) {
  llvm::orc::SymbolMap symbols;
  const auto define = [&](llvm::StringRef name, auto* function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function), llvm::JITSymbolFlags::Exported};
  };
  define(codegen::gpu_builtins::Thread, &Thread);
  define(codegen::gpu_builtins::Barrier, &Barrier);
  define(codegen::gpu_builtins::ShuffleXor, &ShuffleXor);
  define(codegen::gpu_builtins::Shared, &Shared);
  define("memcpy", &std::memcpy);
  define("memset", &std::memset);
  return symbols;
}

absl::Status Internal(llvm::Error error) { return absl::InternalError(llvm::toString(std::move(error))); }

// What a thread of the emulation calls.
struct Call {
  void (*function)(void* const*, void*, std::int64_t);
  void* const* operands;
  void* workspace;
};

}  // namespace

absl::StatusOr<std::unique_ptr<EmulatedRegion>> EmulatedRegion::Create(FusionOp fusion,
                                                                       const codegen::CodeTarget& target) {
  std::unique_ptr<EmulatedRegion> region(new EmulatedRegion);
  llvm::LLVMContext context;
  llvm::Module module("region", context);
  llvm::Expected<codegen::RegionCode> code = codegen::emitRegion(fusion, "region", target, module);
  if (!code) return absl::InvalidArgumentError(llvm::toString(code.takeError()));
  region->code_ = *std::move(code);
  codegen::AssemblyTimes times;
  auto object = codegen::toObject(module, target, times);
  if (!object) return Internal(object.takeError());
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return Internal(jit.takeError());
  region->jit_ = std::move(*jit);
  if (llvm::Error error = region->jit_->getMainJITDylib().define(llvm::orc::absoluteSymbols(Provided(*region->jit_)))) {
    return Internal(std::move(error));
  }
  const llvm::StringRef bytes(reinterpret_cast<const char*>(object->data()), object->size());
  if (llvm::Error error = region->jit_->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(bytes))) {
    return Internal(std::move(error));
  }
  for (const codegen::Stage& stage : region->code_.stages) {
    auto address = region->jit_->lookup(stage.function);
    if (!address) return Internal(address.takeError());
    region->functions_.push_back(address->toPtr<Function>());
  }
  return region;
}

EmulatedRegion::~EmulatedRegion() = default;

absl::Status EmulatedRegion::Run(void* const* operands, void* workspace, std::uint64_t seed) const {
  emulation::SetOptions({seed});
  for (auto [function, stage] : llvm::zip_equal(functions_, code_.stages)) {
    const Call call{function, operands, workspace};
    cuda::KernelFunction kernel;
    kernel.entry = &call;
    kernel.call = [](const void* entry, const void* const*) {
      const Call& made = *static_cast<const Call*>(entry);
      made.function(made.operands, made.workspace, blockIdx.x);
    };
    cuda::LaunchShape shape;
    shape.blocks_x = static_cast<unsigned>(stage.blocks);
    shape.threads = stage.threads;
    shape.shared_bytes = stage.shared_bytes;
    if (absl::Status status = emulation::Run(kernel, shape, {}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

codegen::CodeTarget EmulatedTarget() {
  codegen::CodeTarget target = llvm::cantFail(codegen::hostTarget());
  target.backend = codegen::Backend::Emulated;
  return target;
}

}  // namespace mpc::test
