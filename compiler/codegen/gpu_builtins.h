// What the GPU form of a region needs of the machine: its place in the launch, shared memory, barriers, shuffles and
// conversions. All differences between a GPU and its emulation on the host are here.
#pragma once

#include "compiler/codegen/body_emitter.h"
#include "compiler/codegen/region_emitter.h"

#include <memory>
#include <string>

namespace mpc::codegen {

/// Threads that run in step and shuffle values.
inline constexpr unsigned WarpSize = 32;

/// Functions that emulated code calls. Whoever runs the code provides them:
///
/// | function | what it does |
/// |---|---|
/// | `unsigned mpc_gpu_thread()` | returns the thread's index in its block |
/// | `void mpc_gpu_barrier()` | waits until every thread of the block has come here |
/// | `unsigned mpc_gpu_shuffle_xor(unsigned, unsigned)` | returns the bits of lane (own lane ^ mask) of the warp |
/// | `void *mpc_gpu_shared()` | returns Stage::shared_bytes bytes of the block, 16-byte aligned |
namespace gpu_builtins {
inline constexpr llvm::StringLiteral Thread = "mpc_gpu_thread";
inline constexpr llvm::StringLiteral Barrier = "mpc_gpu_barrier";
inline constexpr llvm::StringLiteral ShuffleXor = "mpc_gpu_shuffle_xor";
inline constexpr llvm::StringLiteral Shared = "mpc_gpu_shared";
} // namespace gpu_builtins

/// One function while it is emitted. Instructions go where the builder of the EmissionScope is.
class GpuBuiltins : public Conversion {
public:
  /// The parameters of a function, and the threads of a block that call it.
  struct Signature {
    std::string Name;
    unsigned Operands;
    bool Workspace;
    unsigned Threads;
  };
  /// Begins a function. The builder is left in its entry block, where the addresses of operands are known.
  static std::unique_ptr<GpuBuiltins> begin(Backend Target, llvm::Module &Module, llvm::IRBuilder<> &Builder,
                                            const Signature &Of);

  llvm::Function *function() const { return Function; }
  /// The address of operand \p Index. The inputs come first, then the outputs.
  llvm::Value *operand(unsigned Index) const { return Operands[Index]; }
  llvm::Value *workspace() const { return Workspace; }
  /// i32.
  llvm::Value *thread() const { return Thread; }
  llvm::Value *block() const { return Block; }

  virtual void barrier() = 0;
  /// The value, f32 or f64, that lane (own lane ^ \p Mask) of the warp gives. All lanes take part.
  llvm::Value *shuffleXor(llvm::Value *V, unsigned Mask);
  /// The shared memory of the block.
  llvm::Value *shared() const { return Shared; }
  /// Ends the function, which has all its instructions and uses \p SharedBytes bytes of shared memory.
  virtual void end(unsigned SharedBytes) = 0;

protected:
  GpuBuiltins(llvm::Module &Module, llvm::IRBuilder<> &Builder) : Module(Module), B(Builder) {}
  virtual llvm::Value *shuffleBits(llvm::Value *Bits, unsigned Mask) = 0;

  llvm::Module &Module;
  llvm::IRBuilder<> &B;
  llvm::Function *Function = nullptr;
  llvm::SmallVector<llvm::Value *> Operands;
  llvm::Value *Workspace = nullptr;
  llvm::Value *Thread = nullptr;
  llvm::Value *Block = nullptr;
  llvm::Value *Shared = nullptr;
};

} // namespace mpc::codegen
