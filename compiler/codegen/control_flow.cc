#include "compiler/codegen/control_flow.h"

#include "llvm/IR/Module.h"

#include <array>

namespace mpc::codegen {

llvm::Function *beginFunction(llvm::IRBuilder<> &B, llvm::Module &Module, const llvm::Twine &Name,
                              llvm::ArrayRef<llvm::Type *> Parameters) {
  auto *Type = llvm::FunctionType::get(B.getVoidTy(), Parameters, /*isVarArg=*/false);
  auto *F = llvm::Function::Create(Type, llvm::Function::ExternalLinkage, Name, Module);
  B.SetInsertPoint(llvm::BasicBlock::Create(Module.getContext(), "entry", F));
  return F;
}

llvm::AllocaInst *emitAlloca(llvm::IRBuilder<> &B, llvm::Function &F, llvm::Type *T) {
  llvm::IRBuilderBase::InsertPointGuard Guard(B);
  B.SetInsertPoint(&F.getEntryBlock(), F.getEntryBlock().begin());
  return B.CreateAlloca(T);
}

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

void emitLoop(llvm::IRBuilder<> &B, llvm::Value *Begin, llvm::Value *End, llvm::Value *Step, IndexOrder Order,
              llvm::function_ref<void(llvm::Value *)> Body) {
  bool Signed = Order == IndexOrder::Signed;
  auto IsBelow = [&](llvm::Value *L, llvm::Value *R) { return Signed ? B.CreateICmpSLT(L, R) : B.CreateICmpULT(L, R); };
  auto NextOf = [&](llvm::Value *I) { return Signed ? B.CreateNSWAdd(I, Step) : B.CreateNUWAdd(I, Step); };
  bool Known = llvm::all_of(std::array{Begin, End, Step}, llvm::IsaPred<llvm::ConstantInt>);
  // The builder folds constants.
  auto IsKnownBelow = [&](llvm::Value *L) { return llvm::cast<llvm::ConstantInt>(IsBelow(L, End))->isOne(); };
  if (Known && !IsKnownBelow(Begin))
    return;
  if (Known && !IsKnownBelow(NextOf(Begin)))
    return Body(Begin);

  llvm::BasicBlock *Before = B.GetInsertBlock();
  auto *Inside = llvm::BasicBlock::Create(B.getContext(), "loop", Before->getParent());
  auto *After = llvm::BasicBlock::Create(B.getContext(), "after", Before->getParent());
  if (Known)
    B.CreateBr(Inside);
  else
    B.CreateCondBr(IsBelow(Begin, End), Inside, After);
  B.SetInsertPoint(Inside);
  llvm::PHINode *I = B.CreatePHI(Begin->getType(), 2);
  I->addIncoming(Begin, Before);
  Body(I);
  llvm::Value *Next = NextOf(I);
  I->addIncoming(Next, B.GetInsertBlock());
  B.CreateCondBr(IsBelow(Next, End), Inside, After);
  B.SetInsertPoint(After);
}

} // namespace mpc::codegen
