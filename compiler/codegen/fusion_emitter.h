// Emits a region as functions in an LLVM module. All targets use the same emitter of the body.
#pragma once

#include "compiler/dialect/fusion_plan.h"

#include "llvm/IR/Module.h"

namespace mpc::codegen {

enum class Backend {
  Host,     ///< this processor's vectors
  Nvptx,    ///< a GPU's threads
  Emulated, ///< the GPU form, as host code that asks the functions of `gpu_builtins.h` for its place: for tests
};

/// The target that code is made for.
struct CodeTarget {
  Backend backend = Backend::Host;
  std::string triple;
  std::string cpu;      ///< "sapphirerapids", "sm_90"
  std::string features; ///< LLVM's "+avx512f,..."
  unsigned vector_bits = 256;
  /// Bytes of the host's last-level cache. A region that moves more bytes finds none of them there again. No computed
  /// number depends on it.
  int64_t cache_bytes = 32 << 20;
  /// Multiprocessors of the GPU; 0: those of the largest one of its architecture.
  unsigned multiprocessors = 0;
  /// Shared memory of a multiprocessor, where that is not what `cpu` says; 0: as `cpu` says.
  unsigned shared_bytes = 0;
};

/// One launch: a function that is called for each of `blocks`. The blocks are independent; stages run one after the
/// other.
struct Stage {
  std::string function;
  int64_t blocks = 1;   ///< tiles on the host
  unsigned threads = 1; ///< threads of a block; the host has one
  /// Shared memory of a block: static in the code up to 48 KiB, else asked for by the launch.
  unsigned shared_bytes = 0;
};

/// The functions of one region, in the order in which they run.
///
/// On the host a stage is `void f(void *const *operands, void *workspace, int64_t tile)`, where operands are the inputs
/// and then the outputs. Emulated: the same, called by every thread of every block. NVPTX: a kernel whose parameters
/// are the addresses of the inputs, of the outputs and, where workspace_bytes is not 0, of the workspace.
struct FusionCode {
  llvm::SmallVector<Stage, 3> stages;
  size_t workspace_bytes = 0;
};

/// Emits the functions of \p fusion as `<Name>_0`, `<Name>_1` ... into \p module. The tiling, and so the order of sums,
/// follows from the shapes and the target alone, not from threads. Errors: what the plan says.
llvm::Expected<FusionCode> emitFusion(FusionOp fusion, llvm::StringRef name, const CodeTarget &target,
                                      llvm::Module &module);

} // namespace mpc::codegen
