// Beginnings, variables and branches that the functions of every target have in common.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace mpc::codegen {

/// Begins an external function in \p module that returns nothing. \p b is left in its entry block.
llvm::Function *beginFunction(llvm::IRBuilder<> &b, llvm::Module &module, const llvm::Twine &name,
                              llvm::ArrayRef<llvm::Type *> parameters);

/// Takes memory for a \p t from the stack where \p f begins. \p b stays where it is.
llvm::AllocaInst *emitAlloca(llvm::IRBuilder<> &b, llvm::Function &f, llvm::Type *t);

/// Begins a block, and returns the branch to it: instructions that go before that dominate everything from here on.
llvm::Instruction *emitAnchor(llvm::IRBuilder<> &b);

/// if (condition) body(). A constant condition is decided here.
void emitWhen(llvm::IRBuilder<> &b, llvm::Value *condition, llvm::function_ref<void()> body);

/// condition ? there() : elsewhere by a branch, for a condition that seldom holds.
llvm::PHINode *emitRarely(llvm::IRBuilder<> &b, llvm::Value *condition, llvm::Value *elsewhere,
                          llvm::function_ref<llvm::Value *()> there);

/// How the indices of a loop are compared and counted; either way they do not overflow.
enum class IndexOrder { Signed, Unsigned };

/// for (i = Begin; i < End; i += Step) Body(i), Step above 0. Without a loop where it is known to run once, or never.
void emitLoop(llvm::IRBuilder<> &b, llvm::Value *begin, llvm::Value *end, llvm::Value *step, IndexOrder order,
              llvm::function_ref<void(llvm::Value *)> body);

} // namespace mpc::codegen
