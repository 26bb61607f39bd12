#include "compiler/codegen/control_flow.h"

#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"

#include <array>

namespace mpc::codegen {

llvm::Function *beginFunction(llvm::IRBuilder<> &b, llvm::Module &module, const llvm::Twine &name,
                              llvm::ArrayRef<llvm::Type *> parameters) {
  auto *type = llvm::FunctionType::get(b.getVoidTy(), parameters, /*isVarArg=*/false);
  auto *f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", f));
  return f;
}

llvm::AllocaInst *emitAlloca(llvm::IRBuilder<> &b, llvm::Function &f, llvm::Type *t) {
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(&f.getEntryBlock(), f.getEntryBlock().begin());
  return b.CreateAlloca(t);
}

llvm::Instruction *emitAnchor(llvm::IRBuilder<> &b) {
  auto *next = llvm::BasicBlock::Create(b.getContext(), "", b.GetInsertBlock()->getParent());
  llvm::Instruction *anchor = b.CreateBr(next);
  b.SetInsertPoint(next);
  return anchor;
}

void emitWhen(llvm::IRBuilder<> &b, llvm::Value *condition, llvm::function_ref<void()> body) {
  if (auto *known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (known->isOne())
      body();
    return;
  }
  llvm::Function *f = b.GetInsertBlock()->getParent();
  auto *inside = llvm::BasicBlock::Create(b.getContext(), "if", f);
  auto *after = llvm::BasicBlock::Create(b.getContext(), "after", f);
  b.CreateCondBr(condition, inside, after);
  b.SetInsertPoint(inside);
  body();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

llvm::PHINode *emitRarely(llvm::IRBuilder<> &b, llvm::Value *condition, llvm::Value *elsewhere,
                          llvm::function_ref<llvm::Value *()> there) {
  llvm::BasicBlock *before = b.GetInsertBlock();
  auto *inside = llvm::BasicBlock::Create(b.getContext(), "rarely", before->getParent());
  auto *after = llvm::BasicBlock::Create(b.getContext(), "after", before->getParent());
  // Without the weights the branch would become a select, for which both sides are computed.
  b.CreateCondBr(condition, inside, after, llvm::MDBuilder(b.getContext()).createUnlikelyBranchWeights());
  b.SetInsertPoint(inside);
  llvm::Value *chosen = there();
  llvm::BasicBlock *end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  llvm::PHINode *result = b.CreatePHI(elsewhere->getType(), 2);
  result->addIncoming(elsewhere, before);
  result->addIncoming(chosen, end);
  return result;
}

void emitLoop(llvm::IRBuilder<> &b, llvm::Value *begin, llvm::Value *end, llvm::Value *step, IndexOrder order,
              llvm::function_ref<void(llvm::Value *)> body) {
  bool isSigned = order == IndexOrder::Signed;
  auto isBelow = [&](llvm::Value *l, llvm::Value *r) {
    return isSigned ? b.CreateICmpSLT(l, r) : b.CreateICmpULT(l, r);
  };
  auto nextOf = [&](llvm::Value *i) { return isSigned ? b.CreateNSWAdd(i, step) : b.CreateNUWAdd(i, step); };
  bool known = llvm::all_of(std::array{begin, end, step}, llvm::IsaPred<llvm::ConstantInt>);
  // The builder folds constants.
  auto isKnownBelow = [&](llvm::Value *l) { return llvm::cast<llvm::ConstantInt>(isBelow(l, end))->isOne(); };
  if (known && !isKnownBelow(begin))
    return;
  if (known && !isKnownBelow(nextOf(begin)))
    return body(begin);

  llvm::BasicBlock *before = b.GetInsertBlock();
  auto *inside = llvm::BasicBlock::Create(b.getContext(), "loop", before->getParent());
  auto *after = llvm::BasicBlock::Create(b.getContext(), "after", before->getParent());
  if (known)
    b.CreateBr(inside);
  else
    b.CreateCondBr(isBelow(begin, end), inside, after);
  b.SetInsertPoint(inside);
  llvm::PHINode *i = b.CreatePHI(begin->getType(), 2);
  i->addIncoming(begin, before);
  body(i);
  llvm::Value *next = nextOf(i);
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(isBelow(next, end), inside, after);
  b.SetInsertPoint(after);
}

} // namespace mpc::codegen
