// What the GPU form of a region needs of the machine: its place in the launch, shared memory, barriers, shuffles and
// conversions. All differences between a GPU and its emulation on the host are here.
#pragma once

#include "compiler/codegen/body_emitter.h"
#include "compiler/codegen/fusion_emitter.h"

#include <memory>
#include <string>

namespace mpc::codegen {

/// Threads that run in step and shuffle values.
inline constexpr unsigned warpSize = 32;

/// Shared memory that a block may have without asking for more. A larger array has no size in the code.
inline constexpr unsigned mostStaticSharedBytes = 48 << 10;

/// Functions that emulated code calls. Whoever runs the code provides them:
///
/// | function | what it does |
/// |---|---|
/// | `unsigned mpc_gpu_thread()` | returns the thread's index in its block |
/// | `void mpc_gpu_barrier()` | waits until every thread of the block has come here |
/// | `unsigned mpc_gpu_shuffle_xor(unsigned, unsigned)` | returns the bits of lane (own lane ^ mask) of the warp |
/// | `void *mpc_gpu_shared()` | returns Stage::shared_bytes bytes of the block, 16-byte aligned |
namespace gpu_builtins {
inline constexpr llvm::StringLiteral thread = "mpc_gpu_thread";
inline constexpr llvm::StringLiteral barrier = "mpc_gpu_barrier";
inline constexpr llvm::StringLiteral shuffleXor = "mpc_gpu_shuffle_xor";
inline constexpr llvm::StringLiteral shared = "mpc_gpu_shared";
} // namespace gpu_builtins

/// One function while it is emitted. Instructions go where the builder of the EmissionScope is.
class GpuBuiltins : public Conversion {
public:
  /// The parameters of a function, and the threads of a block that call it.
  struct Signature {
    std::string name;
    unsigned operands;
    bool workspace;
    unsigned threads;
    unsigned blocksEach; ///< blocks that a multiprocessor must have registers for at once; 0: any number
    /// 90 for sm_90; 0 in the emulation. From 90 on the function first waits for what was launched before, so that it
    /// may be started early, and rows are prefetched.
    unsigned architecture;
  };
  /// Begins a function. The builder is left in its entry block, where the addresses of operands are known.
  static std::unique_ptr<GpuBuiltins> begin(Backend target, llvm::Module &module, llvm::IRBuilder<> &builder,
                                            const Signature &of);

  llvm::Function *getFunction() const { return function; }
  /// The address of operand \p index. The inputs come first, then the outputs.
  llvm::Value *operand(unsigned index) const { return operands[index]; }
  llvm::Value *getWorkspace() const { return workspace; }
  /// i32.
  llvm::Value *getThread() const { return thread; }
  llvm::Value *getBlock() const { return block; }

  virtual void barrier() = 0;
  /// Asks for the cache line at \p address of global memory, which later loads read. Changes nothing else.
  virtual void prefetch(llvm::Value *address) = 0;
  /// The value, f32 or f64, that lane (own lane ^ \p mask) of the warp gives. All lanes take part.
  llvm::Value *shuffleXor(llvm::Value *v, unsigned mask);
  /// The shared memory of the block.
  llvm::Value *getShared() const { return shared; }
  /// Ends the function, which has all its instructions and uses \p sharedBytes bytes of shared memory.
  virtual void end(unsigned sharedBytes) = 0;

protected:
  GpuBuiltins(llvm::Module &module, llvm::IRBuilder<> &builder) : module(module), b(builder) {}
  virtual llvm::Value *shuffleBits(llvm::Value *bits, unsigned mask) = 0;

  llvm::Module &module;
  llvm::IRBuilder<> &b;
  llvm::Function *function = nullptr;
  llvm::SmallVector<llvm::Value *> operands;
  llvm::Value *workspace = nullptr;
  llvm::Value *thread = nullptr;
  llvm::Value *block = nullptr;
  llvm::Value *shared = nullptr;
};

} // namespace mpc::codegen
