#include "compiler/codegen/host_function.h"

#include "compiler/codegen/control_flow.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

namespace mpc::codegen {

HostFunction::HostFunction(llvm::Module &module, llvm::StringRef name, const CodeTarget &target)
    : b(module.getContext()), scope(b) {
  f = beginFunction(b, module, name, {b.getPtrTy(), b.getPtrTy(), b.getInt64Ty()});
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->addFnAttr("target-cpu", target.cpu);
  if (!target.features.empty())
    f->addFnAttr("target-features", target.features);
  f->addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
  f->addFnAttr("min-legal-vector-width", std::to_string(target.vector_bits));
  entry = placeAnchor();
}

void HostFunction::finish() {
  // Other threads see streamed stores only after a fence.
  if (streams)
    b.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {});
  b.CreateRetVoid();
  llvm::DominatorTree tree(*f);
  llvm::PromoteMemToReg(variables, tree);
}

llvm::Value *HostFunction::operand(unsigned index) {
  llvm::Value *&known = operands[index];
  if (!known) {
    llvm::IRBuilderBase::InsertPointGuard guard(b);
    b.SetInsertPoint(entry);
    known = b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), f->getArg(0), index));
  }
  return known;
}

llvm::Value *HostFunction::workspace(size_t offset) {
  return b.CreateConstGEP1_64(b.getInt8Ty(), f->getArg(1), static_cast<int64_t>(offset));
}

llvm::AllocaInst *HostFunction::variable(llvm::Type *t) { return variables.emplace_back(emitAlloca(b, *f, t)); }

llvm::AllocaInst *HostFunction::buffer(llvm::Type *t, uint64_t count) {
  llvm::AllocaInst *memory = emitAlloca(b, *f, llvm::ArrayType::get(t, count));
  memory->setAlignment(llvm::Align(64));
  return memory;
}

void HostFunction::stream(llvm::Value *value, llvm::Value *address) {
  llvm::DataLayout layout = f->getParent()->getDataLayout();
  // LLVM 22 would truncate and store narrow elements in one instruction, which forgets how they are to be stored.
  constexpr unsigned leastBits = 128;
  unsigned bits = layout.getTypeSizeInBits(value->getType());
  if (value->getType()->getScalarSizeInBits() < 32 && bits >= leastBits) {
    value = b.CreateBitCast(value, llvm::FixedVectorType::get(b.getFloatTy(), bits / 32));
    value = b.CreateArithmeticFence(value, value->getType());
  }
  // Buffers begin at multiples of 64 bytes.
  uint64_t alignment = std::min<uint64_t>(64, layout.getTypeStoreSize(value->getType()));
  llvm::StoreInst *store = b.CreateAlignedStore(value, address, llvm::Align(alignment));
  llvm::Metadata *one = llvm::ConstantAsMetadata::get(b.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(b.getContext(), one));
  streams = true;
}

llvm::Instruction *HostFunction::placeAnchor() { return emitAnchor(b); }

void HostFunction::loop(llvm::Value *begin, llvm::Value *end, int64_t step,
                        llvm::function_ref<void(llvm::Value *)> body) {
  emitLoop(b, begin, end, index(step), IndexOrder::Signed, body);
}

void HostFunction::when(llvm::Value *condition, llvm::function_ref<void()> body) { emitWhen(b, condition, body); }

llvm::Value *HostFunction::rarely(llvm::Value *condition, llvm::Value *elsewhere,
                                  llvm::function_ref<llvm::Value *()> there) {
  return emitRarely(b, condition, elsewhere, there);
}

llvm::Constant *firstLanes(unsigned lanes, unsigned count) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  llvm::SmallVector<llvm::Constant *> mask;
  for (unsigned lane = 0; lane < lanes; ++lane)
    mask.push_back(b.getInt1(lane < count));
  return llvm::ConstantVector::get(mask);
}

} // namespace mpc::codegen
