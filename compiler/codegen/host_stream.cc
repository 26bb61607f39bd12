#include "compiler/codegen/host_stream.h"

#include "llvm/IR/IntrinsicsX86.h"

#include <numeric>

namespace mpc::codegen {

HostStream::HostStream(HostFunction &f, llvm::Type *t)
    : f(f), t(t), vector(llvm::FixedVectorType::get(t, lanes)), previous(f.variable(vector)) {
  llvm::IRBuilder<> &b = f.builder();
  llvm::SmallVector<llvm::Constant *> each;
  for (unsigned lane = 0; lane < lanes; ++lane)
    each.push_back(b.getIntN(t->getScalarSizeInBits(), lane));
  numbers = llvm::ConstantVector::get(each);
}

void HostStream::begin(llvm::Value *address) {
  llvm::IRBuilder<> &b = f.builder();
  row = address;
  unsigned bits = t->getScalarSizeInBits();
  llvm::Value *elements = b.CreateLShr(b.CreatePtrToInt(address, b.getInt64Ty()), llvm::Log2_32(bits / 8));
  llvm::Value *before = b.CreateAnd(b.CreateNeg(elements), f.index(lanes - 1));
  head = b.CreateVectorSplat(lanes, b.CreateTrunc(before, b.getIntNTy(bits)));
  b.CreateStore(llvm::PoisonValue::get(vector), previous);
}

llvm::Value *HostStream::addressOf(llvm::Value *column) { return f.builder().CreateGEP(t, row, column); }

void HostStream::storeWhere(llvm::Value *mask, llvm::Value *value, llvm::Value *address) {
  f.builder().CreateMaskedStore(value, address, llvm::Align(t->getScalarSizeInBits() / 8), mask);
}

void HostStream::store(llvm::Value *value, llvm::Value *column) {
  llvm::IRBuilder<> &b = f.builder();
  llvm::Value *before = b.CreateLoad(vector, previous);
  llvm::Value *isFirst = b.CreateICmpEQ(column, f.index(0));
  f.when(isFirst, [&] { storeWhere(b.CreateICmpULT(numbers, head), value, addressOf(column)); });
  f.when(b.CreateNot(isFirst), [&] {
    llvm::Intrinsic::ID choose = t->getScalarSizeInBits() == 16 ? llvm::Intrinsic::x86_avx512_vpermi2var_hi_256
                                                                : llvm::Intrinsic::x86_avx512_vpermi2var_ps_512;
    // Lane i of the aligned vector is lane Head + i of both.
    llvm::Value *from = b.CreateAdd(numbers, head);
    llvm::Value *aligned = b.CreateIntrinsic(choose, {before, from, value});
    llvm::Value *first = b.CreateZExt(b.CreateExtractElement(head, uint64_t(0)), b.getInt64Ty());
    f.stream(aligned, addressOf(b.CreateAdd(b.CreateSub(column, f.index(lanes)), first)));
  });
  b.CreateStore(value, previous);
}

void HostStream::end(llvm::Value *columns) {
  llvm::IRBuilder<> &b = f.builder();
  storeWhere(b.CreateICmpUGE(numbers, head), b.CreateLoad(vector, previous),
             addressOf(b.CreateSub(columns, f.index(lanes))));
}

} // namespace mpc::codegen
