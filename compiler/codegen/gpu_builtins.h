// What the GPU form of a region asks of the machine: its place in the launch, shared memory, barriers, shuffles and
// conversions. All that differs between a GPU and its emulation on the host is here.
#pragma once

#include "compiler/codegen/body_emitter.h"
#include "compiler/codegen/region_emitter.h"

#include <memory>
#include <string>

namespace mpc::codegen {

/// Threads that run in step and shuffle values.
inline constexpr unsigned WarpSize = 32;

/// Functions that emulated code calls, for whoever runs it:
///
///   unsigned mpc_gpu_thread();                         the thread's index in its block
///   void mpc_gpu_barrier();                            every thread of the block has come here
///   unsigned mpc_gpu_shuffle_xor(unsigned, unsigned);  the bits that lane (own lane ^ mask) of the warp gives
///   void *mpc_gpu_shared();                            Stage::shared_bytes bytes of the block, 16-byte aligned
namespace gpu_builtins {
inline constexpr llvm::StringLiteral Thread = "mpc_gpu_thread";
inline constexpr llvm::StringLiteral Barrier = "mpc_gpu_barrier";
inline constexpr llvm::StringLiteral ShuffleXor = "mpc_gpu_shuffle_xor";
inline constexpr llvm::StringLiteral Shared = "mpc_gpu_shared";
} // namespace gpu_builtins

/// One function while it is emitted. Instructions go where the builder of the EmissionScope is.
class GpuBuiltins : public Conversion {
public:
  /// What a function is called with, and by how many threads a block.
  struct Signature {
    std::string Name;
    unsigned Operands;
    bool Workspace;
    unsigned Threads;
  };
  /// Begins a function. The builder is left in its entry block, in which the places of operands are known.
  static std::unique_ptr<GpuBuiltins> begin(Backend Target, llvm::Module &Module, llvm::IRBuilder<> &Builder,
                                            const Signature &Of);

  llvm::Function *function() const { return Function; }
  /// Where operand \p Index begins: the inputs, then the outputs.
  llvm::Value *operand(unsigned Index) const { return Operands[Index]; }
  llvm::Value *workspace() const { return Workspace; }
  /// i32.
  llvm::Value *thread() const { return Thread; }
  llvm::Value *block() const { return Block; }

  virtual void barrier() = 0;
  /// What lane (own lane ^ \p Mask) of the warp gives: f32 or f64. All lanes take part.
  llvm::Value *shuffleXor(llvm::Value *V, unsigned Mask);
  /// Memory of the block.
  llvm::Value *shared() const { return Shared; }
  /// The function has all its instructions and uses \p SharedBytes bytes of shared memory.
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
