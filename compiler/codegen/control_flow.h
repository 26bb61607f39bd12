// Branches that the functions of every target have in common.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace mpc::codegen {

/// Begins a block, and returns the branch to it: instructions that go before that dominate everything from here on.
llvm::Instruction *emitAnchor(llvm::IRBuilder<> &B);

/// if (Condition) Body(). A constant condition is decided here.
void emitWhen(llvm::IRBuilder<> &B, llvm::Value *Condition, llvm::function_ref<void()> Body);

} // namespace mpc::codegen
