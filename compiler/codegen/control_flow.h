// Beginnings, variables and branches that the functions of every target have in common.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace mpc::codegen {

/// Begins an external function in \p Module that returns nothing. \p B is left in its entry block.
llvm::Function *beginFunction(llvm::IRBuilder<> &B, llvm::Module &Module, const llvm::Twine &Name,
                              llvm::ArrayRef<llvm::Type *> Parameters);

/// Takes memory for a \p T from the stack where \p F begins. \p B stays where it is.
llvm::AllocaInst *emitAlloca(llvm::IRBuilder<> &B, llvm::Function &F, llvm::Type *T);

/// Begins a block, and returns the branch to it: instructions that go before that dominate everything from here on.
llvm::Instruction *emitAnchor(llvm::IRBuilder<> &B);

/// if (Condition) Body(). A constant condition is decided here.
void emitWhen(llvm::IRBuilder<> &B, llvm::Value *Condition, llvm::function_ref<void()> Body);

/// How the indices of a loop are compared and counted; either way they do not overflow.
enum class IndexOrder { Signed, Unsigned };

/// for (i = Begin; i < End; i += Step) Body(i), Step above 0. Without a loop where it is known to run once, or never.
void emitLoop(llvm::IRBuilder<> &B, llvm::Value *Begin, llvm::Value *End, llvm::Value *Step, IndexOrder Order,
              llvm::function_ref<void(llvm::Value *)> Body);

} // namespace mpc::codegen
