#include "compiler/codegen/control_flow.h"

namespace mpc::codegen {

llvm::Instruction *emitAnchor(llvm::IRBuilder<> &B) {
  auto *Next = llvm::BasicBlock::Create(B.getContext(), "", B.GetInsertBlock()->getParent());
  llvm::Instruction *Anchor = B.CreateBr(Next);
  B.SetInsertPoint(Next);
  return Anchor;
}

void emitWhen(llvm::IRBuilder<> &B, llvm::Value *Condition, llvm::function_ref<void()> Body) {
  if (auto *Known = llvm::dyn_cast<llvm::ConstantInt>(Condition)) {
    if (Known->isOne())
      Body();
    return;
  }
  llvm::Function *F = B.GetInsertBlock()->getParent();
  auto *Inside = llvm::BasicBlock::Create(B.getContext(), "if", F);
  auto *After = llvm::BasicBlock::Create(B.getContext(), "after", F);
  B.CreateCondBr(Condition, Inside, After);
  B.SetInsertPoint(Inside);
  Body();
  B.CreateBr(After);
  B.SetInsertPoint(After);
}

} // namespace mpc::codegen
