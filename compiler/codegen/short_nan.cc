#include "compiler/codegen/short_nan.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/PatternMatch.h"

namespace mpc::codegen {

using namespace llvm::PatternMatch;

namespace {

/// Follows a value to where its NaN come from.
class NanOrigins {
public:
  bool areShort(llvm::Value *V);

private:
  bool follow(llvm::Value *V);
  bool followCall(const llvm::IntrinsicInst &Call);
  bool allShort(llvm::iterator_range<llvm::User::const_op_iterator> Operands);

  llvm::DenseMap<llvm::Value *, bool> Known;
};

} // namespace

static bool isShort(const llvm::Constant &Number) {
  if (llvm::isa<llvm::PoisonValue>(Number))
    return true;
  const llvm::APFloat *Value = nullptr;
  return match(&Number, m_APFloat(Value)) && (!Value->isNaN() || Value->bitcastToAPInt().countr_zero() >= 16);
}

// Bits whose lower half is 0.
static bool areUpperBits(llvm::Value *Bits) {
  const llvm::APInt *Constant = nullptr;
  if (match(Bits, m_Shl(m_Value(), m_APInt(Constant))))
    return Constant->uge(16);
  return match(Bits, m_And(m_Value(), m_APInt(Constant))) && Constant->countr_zero() >= 16;
}

bool NanOrigins::allShort(llvm::iterator_range<llvm::User::const_op_iterator> Operands) {
  return llvm::all_of(Operands, [&](const llvm::Use &Operand) {
    return !Operand->getType()->isFPOrFPVectorTy() || areShort(Operand.get());
  });
}

bool NanOrigins::followCall(const llvm::IntrinsicInst &Call) {
  switch (Call.getIntrinsicID()) {
  case llvm::Intrinsic::fma:
  case llvm::Intrinsic::sqrt:
  case llvm::Intrinsic::fabs:
  case llvm::Intrinsic::floor:
  case llvm::Intrinsic::copysign:
  case llvm::Intrinsic::x86_avx512_mask_scalef_ps_512:
    return allShort(Call.args());
  default:
    return false;
  }
}

bool NanOrigins::follow(llvm::Value *V) {
  if (!V->getType()->getScalarType()->isFloatTy())
    return false;
  if (auto *Constant = llvm::dyn_cast<llvm::Constant>(V))
    return isShort(*Constant);
  auto *I = llvm::dyn_cast<llvm::Instruction>(V);
  if (!I)
    return false;
  if (auto *Call = llvm::dyn_cast<llvm::IntrinsicInst>(I))
    return followCall(*Call);
  switch (I->getOpcode()) {
  case llvm::Instruction::BitCast:
    return areUpperBits(I->getOperand(0));
  case llvm::Instruction::SIToFP:
  case llvm::Instruction::UIToFP:
    return true;
  case llvm::Instruction::FAdd:
  case llvm::Instruction::FSub:
  case llvm::Instruction::FMul:
  case llvm::Instruction::FDiv:
  case llvm::Instruction::FNeg:
  case llvm::Instruction::Select:
  case llvm::Instruction::ShuffleVector:
  case llvm::Instruction::InsertElement:
    return allShort(I->operands());
  default:
    return false;
  }
}

bool NanOrigins::areShort(llvm::Value *V) {
  if (auto It = Known.find(V); It != Known.end())
    return It->second;
  bool Short = follow(V);
  Known[V] = Short;
  return Short;
}

bool hasShortNan(llvm::Value *V) { return NanOrigins().areShort(V); }

} // namespace mpc::codegen
