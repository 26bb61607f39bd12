// One kernel of the GPU form while it is written, and the values that the kernels of a region leave for each other.
#pragma once

#include "compiler/codegen/gpu_builtins.h"
#include "compiler/codegen/gpu_sweep.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mpc::codegen {

/// A region while its kernels are written. They run one after the other and pass values through the workspace.
struct GpuFusion {
  /// One of the values that an operation's reductions keep. A value of a row is reduced again in every sweep; others
  /// lie in the workspace.
  struct KeptValue {
    Extent extent;
    size_t offset = 0;
  };
  /// Where a value of the body lies for later sweeps: in an output of the region, or in the workspace.
  struct StoredValue {
    std::optional<unsigned> output;
    size_t offset = 0;
  };

  GpuFusion(FusionOp fusion, const FusionPlan &plan, llvm::StringRef name, const CodeTarget &target,
            llvm::Module &module)
      : fusion(fusion), plan(plan), name(name), target(target), module(module) {}

  FusionOp fusion;
  const FusionPlan &plan;
  std::string name;
  const CodeTarget &target;
  llvm::Module &module;
  FusionCode code;
  /// The values that each operation's reductions have kept so far, in order.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<KeptValue, 4>> kept;
  /// The places of the values that kernels so far have left for later sweeps.
  llvm::DenseMap<mlir::Value, StoredValue> stored;

  unsigned numInputs() { return fusion->getNumOperands(); }
  mlir::Value yielded(unsigned output) { return fusion.getBody().front().getTerminator()->getOperand(output); }
  /// A region that combines partial values, or reads what a combination gave, has a workspace.
  bool hasWorkspace() const { return plan.numSweeps() > 1; }
  /// Allocates \p bytes bytes in the workspace and returns their offset.
  size_t allocate(size_t bytes);
};

/// A kernel. Instructions go to its builder, which numbers use too while it lives.
class GpuFunction {
public:
  /// The next kernel of \p region, with \p blocks blocks of \p threads threads. A multiprocessor has registers for at
  /// least \p blocksEach blocks at once; 0: for one.
  GpuFunction(GpuFusion &region, int64_t blocks, unsigned threads, unsigned blocksEach = 0);
  /// Ends the kernel, puts its variables into registers and appends it to the region's stages.
  void finish();

  GpuFusion &getRegion() { return region; }
  llvm::IRBuilder<> &builder() { return b; }
  BodyEmitter &getBody() { return body; }
  Conversion &conversion() { return *builtins; }

  // Indices are i32 where the region's elements allow, else i64.
  llvm::Value *index(int64_t value) { return llvm::ConstantInt::get(indexIntegerType, value); }
  llvm::Value *getThread() { return thread; }
  llvm::Value *getBlock() { return block; }
  /// The smaller of two unsigned indices.
  llvm::Value *minimum(llvm::Value *a, llvm::Value *other);
  /// Whether a < other, as unsigned numbers.
  llvm::Value *isBelow(llvm::Value *a, llvm::Value *other) { return b.CreateICmpULT(a, other); }

  /// The address of an operand of the region: inputs first, then outputs.
  llvm::Value *operand(unsigned number) { return builtins->operand(number); }
  /// The address of the tensor that holds \p v, an input of the region or what an earlier kernel stored. Null: there is
  /// none.
  llvm::Value *addressOf(mlir::Value v);
  /// The address of byte \p offset of the workspace.
  llvm::Value *workspace(size_t offset);
  /// The address of element \p at of type \p t from \p base on.
  llvm::Value *element(llvm::Value *base, llvm::Type *t, llvm::Value *at);
  /// Vectors lie at multiples of their size unless \p aligned is false: then their elements do.
  llvm::Value *load(llvm::Type *t, llvm::Value *address, bool aligned = true);
  void store(llvm::Value *v, llvm::Value *address);

  /// A variable that becomes registers.
  llvm::AllocaInst *variable(llvm::Type *t, llvm::Value *initial);
  llvm::Value *get(llvm::AllocaInst *variable) { return b.CreateLoad(variable->getAllocatedType(), variable); }
  void set(llvm::AllocaInst *variable, llvm::Value *v) { b.CreateStore(v, variable); }

  /// Begins a block. Code before the returned instruction dominates everything from here on.
  llvm::Instruction *placeAnchor();
  /// The instruction before which code goes that the whole kernel shares.
  llvm::Instruction *entryAnchor() { return entry; }
  /// for (i = Begin; i < End; i += Step) Body(i). Without a loop where it is known to run once.
  void loop(llvm::Value *begin, llvm::Value *end, llvm::Value *step, llvm::function_ref<void(llvm::Value *)> body);
  /// if (condition) body().
  void when(llvm::Value *condition, llvm::function_ref<void()> body);
  /// condition ? there() : elsewhere by a branch, for a condition that seldom holds.
  llvm::PHINode *rarely(llvm::Value *condition, llvm::Value *elsewhere, llvm::function_ref<llvm::Value *()> there);

  void barrier() { builtins->barrier(); }
  /// Asks for the cache line at \p address.
  void prefetch(llvm::Value *address) { builtins->prefetch(address); }
  /// Returns \p bytes bytes of shared memory. Earlier uses may have had the same bytes, so a barrier comes first.
  llvm::Value *shared(unsigned bytes);
  /// Returns \p bytes bytes of shared memory that nothing else uses. Comes before any other use of shared memory.
  llvm::Value *reserveShared(unsigned bytes);
  /// Combines the values of a team's \p lanes lanes, a power of two, into one that all of them get. The tree is the
  /// same for every lane. All threads of the block take part.
  llvm::Value *acrossTeam(Combine how, llvm::Value *v, unsigned lanes);
  /// Combines the lanes of a vector into one value.
  static llvm::Value *acrossVector(Combine how, llvm::Value *v);

private:
  GpuFusion &region;
  llvm::IRBuilder<> b;
  EmissionScope scope;
  Stage launch;
  std::unique_ptr<GpuBuiltins> builtins;
  BodyEmitter body;
  llvm::Type *indexIntegerType;
  llvm::Value *thread, *block;
  llvm::Instruction *entry;
  llvm::SmallVector<llvm::AllocaInst *> variables;
  unsigned reservedBytes = 0; ///< bytes at the beginning of shared memory that reserveShared gave
};

/// One accumulator of a step.
struct Accumulator {
  const FusionPlan::Step *step;
  unsigned number; ///< index among the step's accumulators
  Combine how;

  llvm::Type *type() const { return identity(how)->getType(); }
};
/// The accumulators of \p steps: those of the first step, then those of the next.
llvm::SmallVector<Accumulator> accumulatorsOf(llvm::ArrayRef<const FusionPlan::Step *> steps);

} // namespace mpc::codegen
