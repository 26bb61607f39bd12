// One function of generated host code while it is written: its operands, variables and loops.
#pragma once

#include "compiler/codegen/fusion_emitter.h"
#include "compiler/element/number.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mpc::codegen {

/// `void f(void *const *operands, void *workspace, int64_t tile)`. Instructions go to `builder()`, which numbers use
/// too while the object lives.
class HostFunction {
public:
  HostFunction(llvm::Module &module, llvm::StringRef name, const CodeTarget &target);
  /// Ends the function and puts its variables into registers.
  void finish();

  llvm::IRBuilder<> &builder() { return b; }
  llvm::Function *function() { return f; }
  llvm::Value *tile() { return f->getArg(2); }
  /// The address of operand \p index of the region.
  llvm::Value *operand(unsigned index);
  /// The address \p offset bytes into the workspace.
  llvm::Value *workspace(size_t offset);

  /// A variable that becomes registers; and memory on the stack, 64-byte aligned, of \p count elements.
  llvm::AllocaInst *variable(llvm::Type *t);
  llvm::AllocaInst *buffer(llvm::Type *t, uint64_t count);

  /// Stores \p value around the caches; \p address is aligned to its size.
  void stream(llvm::Value *value, llvm::Value *address);

  llvm::ConstantInt *index(int64_t value) { return b.getInt64(value); }
  /// The anchor for code that everything from here on shares.
  llvm::Instruction *placeAnchor();
  /// The anchor at the beginning of the function.
  llvm::Instruction *entryAnchor() { return entry; }

  /// for (i = Begin; i < End; i += Step) Body(i). Without a loop where it is known to run once.
  void loop(llvm::Value *begin, llvm::Value *end, int64_t step, llvm::function_ref<void(llvm::Value *)> body);
  /// if (condition) body(). A constant condition is decided here.
  void when(llvm::Value *condition, llvm::function_ref<void()> body);
  /// condition ? there() : elsewhere by a branch, for a condition that seldom holds.
  llvm::Value *rarely(llvm::Value *condition, llvm::Value *elsewhere, llvm::function_ref<llvm::Value *()> there);

private:
  llvm::IRBuilder<> b;
  EmissionScope scope;
  llvm::Function *f;
  llvm::Instruction *entry;
  bool streams = false;
  llvm::DenseMap<unsigned, llvm::Value *> operands;
  llvm::SmallVector<llvm::AllocaInst *> variables;
};

/// A mask of the first \p count of \p lanes lanes.
llvm::Constant *firstLanes(unsigned lanes, unsigned count);

} // namespace mpc::codegen
