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
  bool areShort(llvm::Value *v);

private:
  bool follow(llvm::Value *v);
  bool followCall(const llvm::IntrinsicInst &call);
  bool followBuffer(const llvm::Value &address);
  bool allShort(llvm::iterator_range<llvm::User::const_op_iterator> operands);

  llvm::DenseMap<llvm::Value *, bool> known;
};

} // namespace

static bool isShort(const llvm::Constant &number) {
  if (llvm::isa<llvm::PoisonValue>(number))
    return true;
  const llvm::APFloat *value = nullptr;
  return match(&number, m_APFloat(value)) && (!value->isNaN() || value->bitcastToAPInt().countr_zero() >= 16);
}

// Bits whose lower half is 0.
static bool areUpperBits(llvm::Value *bits) {
  const llvm::APInt *constant = nullptr;
  if (match(bits, m_Shl(m_Value(), m_APInt(constant))))
    return constant->uge(16);
  return match(bits, m_And(m_Value(), m_APInt(constant))) && constant->countr_zero() >= 16;
}

bool NanOrigins::allShort(llvm::iterator_range<llvm::User::const_op_iterator> operands) {
  return llvm::all_of(operands, [&](const llvm::Use &operand) {
    return !operand->getType()->isFPOrFPVectorTy() || areShort(operand.get());
  });
}

bool NanOrigins::followCall(const llvm::IntrinsicInst &call) {
  switch (call.getIntrinsicID()) {
  case llvm::Intrinsic::fma:
  case llvm::Intrinsic::sqrt:
  case llvm::Intrinsic::fabs:
  case llvm::Intrinsic::floor:
  case llvm::Intrinsic::copysign:
  case llvm::Intrinsic::x86_avx512_mask_scalef_ps_512:
    return allShort(call.args());
  default:
    return false;
  }
}

// Follows a value that an earlier phase left in a buffer on the stack to everything that was stored there.
bool NanOrigins::followBuffer(const llvm::Value &address) {
  auto *buffer = llvm::dyn_cast<llvm::AllocaInst>(llvm::getUnderlyingObject(&address));
  if (!buffer || !buffer->getAllocatedType()->isArrayTy())
    return false;
  llvm::SmallVector<const llvm::Value *> addresses = {buffer};
  while (!addresses.empty())
    for (const llvm::User *user : addresses.pop_back_val()->users()) {
      if (llvm::isa<llvm::GetElementPtrInst>(user))
        addresses.push_back(user);
      else if (auto *store = llvm::dyn_cast<llvm::StoreInst>(user); store && !areShort(store->getOperand(0)))
        return false;
      else if (!store && !llvm::isa<llvm::LoadInst>(user))
        return false;
    }
  return true;
}

bool NanOrigins::follow(llvm::Value *v) {
  // A NaN that another one replaces.
  llvm::Value *a = nullptr, *b = nullptr, *chosen = nullptr;
  if (match(v, m_Select(m_SpecificFCmp(llvm::FCmpInst::FCMP_UNO, m_Value(a), m_Value(b)), m_Value(chosen),
                        m_Deferred(a))) &&
      a == b)
    return areShort(chosen);
  if (!v->getType()->getScalarType()->isFloatTy())
    return false;
  if (auto *constant = llvm::dyn_cast<llvm::Constant>(v))
    return isShort(*constant);
  auto *i = llvm::dyn_cast<llvm::Instruction>(v);
  if (!i)
    return false;
  if (auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(i))
    return followCall(*call);
  switch (i->getOpcode()) {
  case llvm::Instruction::BitCast:
    return areUpperBits(i->getOperand(0));
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
    return allShort(i->operands());
  case llvm::Instruction::Load:
    return followBuffer(*llvm::cast<llvm::LoadInst>(i)->getPointerOperand());
  default:
    return false;
  }
}

bool NanOrigins::areShort(llvm::Value *v) {
  // A value that a cycle leads back to is not short while it is being followed.
  auto [entry, isNew] = known.try_emplace(v, false);
  if (!isNew)
    return entry->second;
  bool isShort = follow(v);
  known[v] = isShort;
  return isShort;
}

llvm::Value *withShortNan(llvm::Value *v) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  return b.CreateSelect(b.CreateFCmpUNO(v, v), llvm::ConstantFP::getNaN(v->getType()), v);
}

bool hasShortNan(llvm::Value *v) { return NanOrigins().areShort(v); }

} // namespace mpc::codegen
