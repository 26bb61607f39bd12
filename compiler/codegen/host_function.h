// One function of generated host code while it is written: its operands, variables and loops.
#pragma once

#include "compiler/codegen/region_emitter.h"
#include "compiler/element/number.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mpc::codegen {

/// `void f(void *const *operands, void *workspace, int64_t tile)`. Instructions go to `builder()`, which numbers use
/// too while the object lives.
class HostFunction {
public:
  HostFunction(llvm::Module &Module, llvm::StringRef Name, const CodeTarget &Target);
  /// Ends the function and puts its variables into registers.
  void finish();

  llvm::IRBuilder<> &builder() { return B; }
  llvm::Function *function() { return F; }
  llvm::Value *tile() { return F->getArg(2); }
  /// The address of operand \p Index of the region.
  llvm::Value *operand(unsigned Index);
  /// The address \p Offset bytes into the workspace.
  llvm::Value *workspace(size_t Offset);

  /// A variable that becomes registers; and memory on the stack, 64-byte aligned, of \p Count elements.
  llvm::AllocaInst *variable(llvm::Type *T);
  llvm::AllocaInst *buffer(llvm::Type *T, uint64_t Count);

  /// Stores \p Value around the caches; \p Address is aligned to its size.
  void stream(llvm::Value *Value, llvm::Value *Address);

  llvm::ConstantInt *index(int64_t Value) { return B.getInt64(Value); }
  /// The anchor for code that everything from here on shares.
  llvm::Instruction *placeAnchor();
  /// The anchor at the beginning of the function.
  llvm::Instruction *entryAnchor() { return Entry; }

  /// for (i = Begin; i < End; i += Step) Body(i). Without a loop where it is known to run once.
  void loop(llvm::Value *Begin, llvm::Value *End, int64_t Step, llvm::function_ref<void(llvm::Value *)> Body);
  /// if (Condition) Body(). A constant condition is decided here.
  void when(llvm::Value *Condition, llvm::function_ref<void()> Body);
  /// Condition ? There() : Elsewhere by a branch, for a condition that seldom holds.
  llvm::Value *rarely(llvm::Value *Condition, llvm::Value *Elsewhere, llvm::function_ref<llvm::Value *()> There);

private:
  llvm::IRBuilder<> B;
  EmissionScope Scope;
  llvm::Function *F;
  llvm::Instruction *Entry;
  bool Streams = false;
  llvm::DenseMap<unsigned, llvm::Value *> Operands;
  llvm::SmallVector<llvm::AllocaInst *> Variables;
};

/// A mask of the first \p Count of \p Lanes lanes.
llvm::Constant *firstLanes(unsigned Lanes, unsigned Count);

} // namespace mpc::codegen
