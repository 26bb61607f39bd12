#include "compiler/codegen/short_nan.h"

#include "compiler/element/number.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/ValueTracking.h"
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
  bool followBuffer(const llvm::Value &Address);
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

// Follows a value that an earlier phase left in a buffer on the stack to everything that was stored there.
bool NanOrigins::followBuffer(const llvm::Value &Address) {
  auto *Buffer = llvm::dyn_cast<llvm::AllocaInst>(llvm::getUnderlyingObject(&Address));
  if (!Buffer || !Buffer->getAllocatedType()->isArrayTy())
    return false;
  llvm::SmallVector<const llvm::Value *> Addresses = {Buffer};
  while (!Addresses.empty())
    for (const llvm::User *User : Addresses.pop_back_val()->users()) {
      if (llvm::isa<llvm::GetElementPtrInst>(User))
        Addresses.push_back(User);
      else if (auto *Store = llvm::dyn_cast<llvm::StoreInst>(User); Store && !areShort(Store->getOperand(0)))
        return false;
      else if (!Store && !llvm::isa<llvm::LoadInst>(User))
        return false;
    }
  return true;
}

bool NanOrigins::follow(llvm::Value *V) {
  // A NaN that another one replaces.
  llvm::Value *A = nullptr, *B = nullptr, *Chosen = nullptr;
  if (match(V, m_Select(m_SpecificFCmp(llvm::FCmpInst::FCMP_UNO, m_Value(A), m_Value(B)), m_Value(Chosen),
                        m_Deferred(A))) &&
      A == B)
    return areShort(Chosen);
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
  case llvm::Instruction::PHI:
    return allShort(I->operands());
  case llvm::Instruction::Load:
    return followBuffer(*llvm::cast<llvm::LoadInst>(I)->getPointerOperand());
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

llvm::Value *withShortNan(llvm::Value *V) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  return B.CreateSelect(B.CreateFCmpUNO(V, V), llvm::ConstantFP::getNaN(V->getType()), V);
}

bool hasShortNan(llvm::Value *V) { return NanOrigins().areShort(V); }

} // namespace mpc::codegen
