#include "compiler/codegen/host_function.h"

#include "compiler/codegen/control_flow.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace mpc::codegen {

HostFunction::HostFunction(llvm::Module &Module, llvm::StringRef Name, const CodeTarget &Target)
    : B(Module.getContext()), Scope(B) {
  F = beginFunction(B, Module, Name, {B.getPtrTy(), B.getPtrTy(), B.getInt64Ty()});
  F->addFnAttr(llvm::Attribute::NoUnwind);
  F->addFnAttr("target-cpu", Target.cpu);
  if (!Target.features.empty())
    F->addFnAttr("target-features", Target.features);
  F->addFnAttr("prefer-vector-width", std::to_string(Target.vector_bits));
  F->addFnAttr("min-legal-vector-width", std::to_string(Target.vector_bits));
  Entry = placeAnchor();
}

void HostFunction::finish() {
  // Other threads see streamed stores only after a fence.
  if (Streams)
    B.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {});
  B.CreateRetVoid();
  llvm::DominatorTree Tree(*F);
  llvm::PromoteMemToReg(Variables, Tree);
}

llvm::Value *HostFunction::operand(unsigned Index) {
  llvm::Value *&Known = Operands[Index];
  if (!Known) {
    llvm::IRBuilderBase::InsertPointGuard Guard(B);
    B.SetInsertPoint(Entry);
    Known = B.CreateLoad(B.getPtrTy(), B.CreateConstGEP1_64(B.getPtrTy(), F->getArg(0), Index));
  }
  return Known;
}

llvm::Value *HostFunction::workspace(size_t Offset) {
  return B.CreateConstGEP1_64(B.getInt8Ty(), F->getArg(1), static_cast<int64_t>(Offset));
}

llvm::AllocaInst *HostFunction::variable(llvm::Type *T) { return Variables.emplace_back(emitAlloca(B, *F, T)); }

llvm::AllocaInst *HostFunction::buffer(llvm::Type *T, uint64_t Count) {
  llvm::AllocaInst *Memory = emitAlloca(B, *F, llvm::ArrayType::get(T, Count));
  Memory->setAlignment(llvm::Align(64));
  return Memory;
}

void HostFunction::stream(llvm::Value *Value, llvm::Value *Address) {
  llvm::DataLayout Layout = F->getParent()->getDataLayout();
  // LLVM 22 would truncate and store narrow elements in one instruction, which forgets how they are to be stored.
  constexpr unsigned LeastBits = 128;
  unsigned Bits = Layout.getTypeSizeInBits(Value->getType());
  if (Value->getType()->getScalarSizeInBits() < 32 && Bits >= LeastBits) {
    Value = B.CreateBitCast(Value, llvm::FixedVectorType::get(B.getFloatTy(), Bits / 32));
    Value = B.CreateArithmeticFence(Value, Value->getType());
  }
  // Buffers begin at multiples of 64 bytes.
  uint64_t Alignment = std::min<uint64_t>(64, Layout.getTypeStoreSize(Value->getType()));
  llvm::StoreInst *Store = B.CreateAlignedStore(Value, Address, llvm::Align(Alignment));
  llvm::Metadata *One = llvm::ConstantAsMetadata::get(B.getInt32(1));
  Store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(B.getContext(), One));
  Streams = true;
}

llvm::Instruction *HostFunction::placeAnchor() { return emitAnchor(B); }

void HostFunction::loop(llvm::Value *Begin, llvm::Value *End, int64_t Step,
                        llvm::function_ref<void(llvm::Value *)> Body) {
  emitLoop(B, Begin, End, index(Step), IndexOrder::Signed, Body);
}

void HostFunction::when(llvm::Value *Condition, llvm::function_ref<void()> Body) { emitWhen(B, Condition, Body); }

llvm::Value *HostFunction::rarely(llvm::Value *Condition, llvm::Value *Elsewhere,
                                  llvm::function_ref<llvm::Value *()> There) {
  auto *Inside = llvm::BasicBlock::Create(B.getContext(), "rarely", F);
  auto *After = llvm::BasicBlock::Create(B.getContext(), "after", F);
  llvm::BasicBlock *Before = B.GetInsertBlock();
  // Without the weights the branch would become a select, for which both sides are computed.
  B.CreateCondBr(Condition, Inside, After, llvm::MDBuilder(B.getContext()).createUnlikelyBranchWeights());
  B.SetInsertPoint(Inside);
  llvm::Value *Chosen = There();
  llvm::BasicBlock *End = B.GetInsertBlock();
  B.CreateBr(After);
  B.SetInsertPoint(After);
  llvm::PHINode *Result = B.CreatePHI(Elsewhere->getType(), 2);
  Result->addIncoming(Elsewhere, Before);
  Result->addIncoming(Chosen, End);
  return Result;
}

llvm::Constant *firstLanes(unsigned Lanes, unsigned Count) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::SmallVector<llvm::Constant *> Mask;
  for (unsigned Lane = 0; Lane < Lanes; ++Lane)
    Mask.push_back(B.getInt1(Lane < Count));
  return llvm::ConstantVector::get(Mask);
}

} // namespace mpc::codegen
