#include "tests/compiler/codegen/emulated_fusion.h"

#include <utility>

#include "compiler/codegen/code_generator.h"
#include "compiler/codegen/gpu_builtins.h"
#include "tests/cuda_emulation/device_language.h"
#include "tests/cuda_emulation/emulator.h"

namespace mpc::test {
namespace {

unsigned Thread() { return threadIdx.x; }
void Barrier() { __syncthreads(); }
unsigned ShuffleXor(unsigned bits, unsigned mask) { return __shfl_xor_sync(~0u, bits, static_cast<int>(mask)); }
void* Shared() { return emulation::DynamicSharedStorage(); }

// What a thread of the emulation calls.
struct Call {
  LoadedFusion::Function function;
  void* const* operands;
  void* workspace;
};

}  // namespace

llvm::ArrayRef<ProvidedFunction> EmulationFunctions() {
  static const ProvidedFunction functions[] = {
      {codegen::gpu_builtins::thread, reinterpret_cast<void*>(&Thread)},
      {codegen::gpu_builtins::barrier, reinterpret_cast<void*>(&Barrier)},
      {codegen::gpu_builtins::shuffleXor, reinterpret_cast<void*>(&ShuffleXor)},
      {codegen::gpu_builtins::shared, reinterpret_cast<void*>(&Shared)},
  };
  return functions;
}

absl::Status RunEmulated(const LoadedFusion& region, void* const* operands, void* workspace, std::uint64_t seed) {
  emulation::SetOptions({seed});
  for (auto [function, stage] : llvm::zip_equal(region.functions, region.code.stages)) {
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

absl::StatusOr<std::unique_ptr<EmulatedFusion>> EmulatedFusion::Create(FusionOp fusion,
                                                                       const codegen::CodeTarget& target) {
  std::unique_ptr<EmulatedFusion> region(new EmulatedFusion);
  auto loaded = LoadedFusions::Create({fusion}, target, EmulationFunctions());
  if (!loaded.ok()) return loaded.status();
  region->loaded_ = *std::move(loaded);
  return region;
}

codegen::CodeTarget EmulatedTarget() {
  codegen::CodeTarget target = llvm::cantFail(codegen::hostTarget());
  target.backend = codegen::Backend::Emulated;
  return target;
}

}  // namespace mpc::test
