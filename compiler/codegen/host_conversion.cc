#include "compiler/codegen/host_conversion.h"

#include "compiler/codegen/short_nan.h"
#include "llvm/IR/PatternMatch.h"

namespace mpc::codegen {

// The bits of an f32 that make a bf16.
static constexpr uint32_t UpperHalf = 0xffff0000;
// How many selections a value is followed through.
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
  if (match(V, m_BitCast(m_And(m_Value(), m_SpecificInt(UpperHalf)))))
    return true;
  if (match(V, m_BitCast(m_Shl(m_ZExt(m_Value(A)), m_SpecificInt(16)))))
    return A->getType()->getScalarSizeInBits() == 16;
  if (match(V, m_Select(m_Value(), m_Value(A), m_Value(B))))
    return IsExact(A) && IsExact(B);
  if (match(V, m_FNeg(m_Value(A))) || match(V, m_FAbs(m_Value(A))) ||
      match(V, m_Shuffle(m_InsertElt(m_Value(), m_Value(A), m_ZeroInt()), m_Value(), m_ZeroMask())))
    return IsExact(A);
  return false;
}

// The upper half of each number: of two registers in one permutation.
static llvm::Value *upperHalves(llvm::Value *Bits) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  unsigned Lanes = lanesOf(Bits);
  if (Lanes == 0)
    return B.CreateTrunc(B.CreateLShr(Bits, 16), B.getInt16Ty());
  llvm::Value *Halves = B.CreateBitCast(Bits, llvm::FixedVectorType::get(B.getInt16Ty(), 2 * Lanes));
  llvm::SmallVector<int> Odd;
  for (unsigned Lane = 0; Lane < Lanes; ++Lane)
    Odd.push_back(2 * Lane + 1);
  return B.CreateShuffleVector(Halves, Odd);
}

// Rounds to nearest even in the upper half, where \p Bits are no NaN or a short one. The sum carries into the upper
// half. A value that was halfway leaves nothing in the lower half; its result is made even.
static Unsigned roundedUpperHalf(Unsigned Bits) {
  Unsigned Nearest = Bits + Unsigned(0x8000);
  Bool WasHalfway = (Nearest & Unsigned(0xffff)) == std::int64_t{0};
  return select(WasHalfway, Nearest & Unsigned(0xfffeffff), Nearest);
}

Float HostConversion::widen(llvm::Value *Stored, mlir::Type StorageType) {
  llvm::Value *Known = StorageType.isF16() ? nullptr : Rounded.lookup(Stored);
  return Known ? Float(Known) : Conversion::widen(Stored, StorageType);
}

Float HostConversion::shared(Float Value) {
  return ShortensShared && lanesOf(Value.value()) == 0 ? Float(withShortNan(Value.value())) : Value;
}

llvm::Value *HostConversion::round(Float Value, mlir::Type StorageType) {
  llvm::IRBuilder<> &B = EmissionScope::builder();
  if (StorageType.isF16())
    return roundByTarget(Value, B.getHalfTy());
  llvm::Value *V = Value.value();
  Unsigned Bits(B.CreateBitCast(V, typeLike(B.getInt32Ty(), V)));
  llvm::Value *InF32 = V;
  if (!isWidenedBf16(V)) {
    Unsigned Nearest = roundedUpperHalf(Bits);
    Bits = hasShortNan(V) ? Nearest : select(Value != Value, Bits | Unsigned(0x400000), Nearest);
    InF32 = B.CreateBitCast((Bits & Unsigned(UpperHalf)).value(), V->getType());
  }
  llvm::Value *Stored = upperHalves(Bits.value());
  if (!llvm::isa<llvm::Constant>(Stored))
    Rounded[Stored] = InF32;
  return Stored;
}

} // namespace mpc::codegen
