// One kernel of the GPU form while it is written, and the values that the kernels of a region leave for each other.
#pragma once

#include "compiler/codegen/gpu_builtins.h"
#include "compiler/codegen/gpu_sweep.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mpc::codegen {

/// A region while its kernels are written. They run one after the other and pass values through the workspace.
struct GpuRegion {
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

  GpuRegion(FusionOp Fusion, const RegionPlan &Plan, llvm::StringRef Name, const CodeTarget &Target,
            llvm::Module &Module)
      : fusion(Fusion), plan(Plan), name(Name), target(Target), module(Module) {}

  FusionOp fusion;
  const RegionPlan &plan;
  std::string name;
  const CodeTarget &target;
  llvm::Module &module;
  RegionCode code;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<KeptValue, 4>> kept;
  llvm::DenseMap<mlir::Value, StoredValue> stored;

  unsigned numInputs() { return fusion->getNumOperands(); }
  mlir::Value yielded(unsigned Output) { return fusion.getBody().front().getTerminator()->getOperand(Output); }
  /// A region that combines partial values, or reads what a combination gave, has a workspace.
  bool hasWorkspace() const { return plan.numSweeps() > 1; }
  /// Allocates \p Bytes bytes in the workspace and returns their offset.
  size_t allocate(size_t Bytes);
};

/// A kernel. Instructions go to its builder, which numbers use too while it lives.
class GpuFunction {
public:
  /// The next kernel of \p Region, with \p Blocks blocks of \p Threads threads.
  GpuFunction(GpuRegion &Region, int64_t Blocks, unsigned Threads);
  /// Ends the kernel, puts its variables into registers and appends it to the region's stages.
  void finish();

  GpuRegion &region() { return Region; }
  llvm::IRBuilder<> &builder() { return B; }
  BodyEmitter &body() { return Body; }
  Conversion &conversion() { return *Builtins; }

  // Indices are i32 where the region's elements allow, else i64.
  llvm::Type *indexType() { return Index; }
  llvm::Value *index(int64_t Value) { return llvm::ConstantInt::get(Index, Value); }
  llvm::Value *thread() { return Thread; }
  llvm::Value *block() { return Block; }
  llvm::Value *minimum(llvm::Value *A, llvm::Value *Other);
  llvm::Value *isBelow(llvm::Value *A, llvm::Value *Other) { return B.CreateICmpULT(A, Other); }

  llvm::Value *operand(unsigned Number) { return Builtins->operand(Number); }
  llvm::Value *workspace(size_t Offset);
  /// The address of element \p At of type \p T from \p Base on.
  llvm::Value *element(llvm::Value *Base, llvm::Type *T, llvm::Value *At);
  llvm::Value *load(llvm::Type *T, llvm::Value *Address);
  void store(llvm::Value *V, llvm::Value *Address);

  /// A variable that becomes registers.
  llvm::AllocaInst *variable(llvm::Type *T, llvm::Value *Initial);
  llvm::Value *get(llvm::AllocaInst *Variable) { return B.CreateLoad(Variable->getAllocatedType(), Variable); }
  void set(llvm::AllocaInst *Variable, llvm::Value *V) { B.CreateStore(V, Variable); }

  /// The anchor for code that everything from here on shares, and the one for code that the whole kernel shares.
  llvm::Instruction *placeAnchor();
  llvm::Instruction *entryAnchor() { return Entry; }
  /// for (i = Begin; i < End; i += Step) Body(i). Without a loop where it is known to run once.
  void loop(llvm::Value *Begin, llvm::Value *End, llvm::Value *Step, llvm::function_ref<void(llvm::Value *)> Body);
  void when(llvm::Value *Condition, llvm::function_ref<void()> Body);

  void barrier() { Builtins->barrier(); }
  /// Returns \p Bytes bytes of shared memory. Earlier uses may have had the same bytes, so a barrier comes first.
  llvm::Value *shared(unsigned Bytes);
  /// Combines the values of a team's \p Lanes lanes, a power of two, into one that all of them get. The tree is the
  /// same for every lane. All threads of the block take part.
  llvm::Value *acrossTeam(Combine How, llvm::Value *V, unsigned Lanes);
  /// Combines the lanes of a vector into one value.
  static llvm::Value *acrossVector(Combine How, llvm::Value *V);

private:
  GpuRegion &Region;
  llvm::IRBuilder<> B;
  EmissionScope Scope;
  Stage Launch;
  std::unique_ptr<GpuBuiltins> Builtins;
  BodyEmitter Body;
  llvm::Type *Index;
  llvm::Value *Thread, *Block;
  llvm::Instruction *Entry;
  llvm::SmallVector<llvm::AllocaInst *> Variables;
};

/// One accumulator of a step.
struct Accumulator {
  const RegionPlan::Step *step;
  unsigned number; ///< index among the step's accumulators
  Combine how;

  llvm::Type *type() const { return identity(how)->getType(); }
};
llvm::SmallVector<Accumulator> accumulatorsOf(llvm::ArrayRef<const RegionPlan::Step *> Steps);

} // namespace mpc::codegen
