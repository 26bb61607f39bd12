#include "compiler/codegen/host_stream.h"

#include "llvm/IR/IntrinsicsX86.h"

#include <numeric>

namespace mpc::codegen {

HostStream::HostStream(HostFunction &F, llvm::Type *T)
    : F(F), T(T), Vector(llvm::FixedVectorType::get(T, Lanes)), Previous(F.variable(Vector)) {
  llvm::IRBuilder<> &B = F.builder();
  llvm::SmallVector<llvm::Constant *> Each;
  for (unsigned Lane = 0; Lane < Lanes; ++Lane)
    Each.push_back(B.getIntN(T->getScalarSizeInBits(), Lane));
  Numbers = llvm::ConstantVector::get(Each);
}

void HostStream::begin(llvm::Value *Address) {
  llvm::IRBuilder<> &B = F.builder();
  Row = Address;
  unsigned Bits = T->getScalarSizeInBits();
  llvm::Value *Elements = B.CreateLShr(B.CreatePtrToInt(Address, B.getInt64Ty()), llvm::Log2_32(Bits / 8));
  llvm::Value *Before = B.CreateAnd(B.CreateNeg(Elements), F.index(Lanes - 1));
  Head = B.CreateVectorSplat(Lanes, B.CreateTrunc(Before, B.getIntNTy(Bits)));
  B.CreateStore(llvm::PoisonValue::get(Vector), Previous);
}

llvm::Value *HostStream::addressOf(llvm::Value *Column) { return F.builder().CreateGEP(T, Row, Column); }

void HostStream::storeWhere(llvm::Value *Mask, llvm::Value *Value, llvm::Value *Address) {
  F.builder().CreateMaskedStore(Value, Address, llvm::Align(T->getScalarSizeInBits() / 8), Mask);
}

void HostStream::store(llvm::Value *Value, llvm::Value *Column) {
  llvm::IRBuilder<> &B = F.builder();
  llvm::Value *Before = B.CreateLoad(Vector, Previous);
  llvm::Value *IsFirst = B.CreateICmpEQ(Column, F.index(0));
  F.when(IsFirst, [&] { storeWhere(B.CreateICmpULT(Numbers, Head), Value, addressOf(Column)); });
  F.when(B.CreateNot(IsFirst), [&] {
    llvm::Intrinsic::ID Choose = T->getScalarSizeInBits() == 16 ? llvm::Intrinsic::x86_avx512_vpermi2var_hi_256
                                                                : llvm::Intrinsic::x86_avx512_vpermi2var_ps_512;
    // Lane i of the aligned vector is lane Head + i of both.
    llvm::Value *From = B.CreateAdd(Numbers, Head);
    llvm::Value *Aligned = B.CreateIntrinsic(Choose, {Before, From, Value});
    llvm::Value *First = B.CreateZExt(B.CreateExtractElement(Head, uint64_t(0)), B.getInt64Ty());
    F.stream(Aligned, addressOf(B.CreateAdd(B.CreateSub(Column, F.index(Lanes)), First)));
  });
  B.CreateStore(Value, Previous);
}

void HostStream::end(llvm::Value *Columns) {
  llvm::IRBuilder<> &B = F.builder();
  storeWhere(B.CreateICmpUGE(Numbers, Head), B.CreateLoad(Vector, Previous),
             addressOf(B.CreateSub(Columns, F.index(Lanes))));
}

} // namespace mpc::codegen
