#include "compiler/codegen/host_conversion.h"

#include "llvm/IR/PatternMatch.h"

namespace mpc::codegen {

// How far a value is followed to what it was chosen from.
static constexpr unsigned MostChoices = 6;

// Whether \p V is a bf16 that was widened, or chosen from such with another sign perhaps: then nothing is to be
// rounded.
static bool isWidenedBf16(llvm::Value *V, unsigned Choices = 0) {
  using namespace llvm::PatternMatch;
  if (auto *Constant = llvm::dyn_cast<llvm::Constant>(V)) {
    const llvm::APFloat *Number = nullptr;
    return match(Constant, m_APFloat(Number)) && (Number->bitcastToAPInt() & 0xffff).isZero();
  }
  if (Choices == MostChoices)
    return false;
  auto IsExact = [&](llvm::Value *Operand) { return isWidenedBf16(Operand, Choices + 1); };
  llvm::Value *A = nullptr, *B = nullptr;
  if (match(V, m_BitCast(m_Shl(m_ZExt(m_Value(A)), m_SpecificInt(16)))))
    return A->getType()->getScalarSizeInBits() == 16;
  if (match(V, m_Select(m_Value(), m_Value(A), m_Value(B))))
    return IsExact(A) && IsExact(B);
  if (match(V, m_FNeg(m_Value(A))) || match(V, m_FAbs(m_Value(A))) ||
      match(V, m_Shuffle(m_InsertElt(m_Value(), m_Value(A), m_ZeroInt()), m_Value(), m_ZeroMask())))
    return IsExact(A);
  return false;
}

Float HostConversion::widen(llvm::Value *Stored, mlir::Type StorageType) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::Type *F32 = typeLike(B.getFloatTy(), Stored);
  if (StorageType.isF16())
    return Float(B.CreateFPExt(B.CreateBitCast(Stored, typeLike(B.getHalfTy(), Stored)), F32));
  llvm::Value *Bits = B.CreateShl(B.CreateZExt(Stored, typeLike(B.getInt32Ty(), Stored)), 16);
  return Float(B.CreateBitCast(Bits, F32));
}

llvm::Value *HostConversion::round(Float Value, mlir::Type StorageType) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  llvm::Value *V = Value.value();
  llvm::Type *I16 = typeLike(B.getInt16Ty(), V);
  if (StorageType.isF16())
    return B.CreateBitCast(B.CreateFPTrunc(V, typeLike(B.getHalfTy(), V)), I16);
  Unsigned Bits(B.CreateBitCast(V, typeLike(B.getInt32Ty(), V)));
  if (isWidenedBf16(V))
    return B.CreateTrunc((Bits >> Unsigned(16)).value(), I16);
  Unsigned Rounded = Bits + Unsigned(0x7fff) + ((Bits >> Unsigned(16)) & Unsigned(1));
  Unsigned Quiet = Bits | Unsigned(0x400000);
  return B.CreateTrunc((select(Value != Value, Quiet, Rounded) >> Unsigned(16)).value(), I16);
}

} // namespace mpc::codegen
