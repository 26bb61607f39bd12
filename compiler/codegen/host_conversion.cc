#include "compiler/codegen/host_conversion.h"

#include "compiler/codegen/short_nan.h"
#include "llvm/IR/PatternMatch.h"

namespace mpc::codegen {

// The bits of an f32 that make a bf16.
static constexpr uint32_t upperHalf = 0xffff0000;
// How many selections a value is followed through.
static constexpr unsigned mostChoices = 6;

// Whether \p v is a bf16 that was widened, or chosen from such with another sign perhaps: then nothing is to be
// rounded.
static bool isWidenedBf16(llvm::Value *v, unsigned choices = 0) {
  using namespace llvm::PatternMatch;
  if (auto *constant = llvm::dyn_cast<llvm::Constant>(v)) {
    const llvm::APFloat *number = nullptr;
    return match(constant, m_APFloat(number)) && (number->bitcastToAPInt() & 0xffff).isZero();
  }
  if (choices == mostChoices)
    return false;
  auto isExact = [&](llvm::Value *operand) { return isWidenedBf16(operand, choices + 1); };
  llvm::Value *a = nullptr, *b = nullptr;
  if (match(v, m_BitCast(m_And(m_Value(), m_SpecificInt(upperHalf)))))
    return true;
  if (match(v, m_BitCast(m_Shl(m_ZExt(m_Value(a)), m_SpecificInt(16)))))
    return a->getType()->getScalarSizeInBits() == 16;
  if (match(v, m_Select(m_Value(), m_Value(a), m_Value(b))))
    return isExact(a) && isExact(b);
  if (match(v, m_FNeg(m_Value(a))) || match(v, m_FAbs(m_Value(a))) ||
      match(v, m_Shuffle(m_InsertElt(m_Value(), m_Value(a), m_ZeroInt()), m_Value(), m_ZeroMask())))
    return isExact(a);
  return false;
}

// The upper half of each number: of two registers in one permutation.
static llvm::Value *upperHalves(llvm::Value *bits) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  unsigned lanes = lanesOf(bits);
  if (lanes == 0)
    return b.CreateTrunc(b.CreateLShr(bits, 16), b.getInt16Ty());
  llvm::Value *halves = b.CreateBitCast(bits, llvm::FixedVectorType::get(b.getInt16Ty(), 2 * lanes));
  llvm::SmallVector<int> odd;
  for (unsigned lane = 0; lane < lanes; ++lane)
    odd.push_back(2 * lane + 1);
  return b.CreateShuffleVector(halves, odd);
}

// Rounds to nearest even in the upper half, where \p bits are no NaN or a short one. The sum carries into the upper
// half. A value that was halfway leaves nothing in the lower half; its result is made even.
static Unsigned roundedUpperHalf(Unsigned bits) {
  Unsigned nearest = bits + Unsigned(0x8000);
  Bool wasHalfway = (nearest & Unsigned(0xffff)) == std::int64_t{0};
  return select(wasHalfway, nearest & Unsigned(0xfffeffff), nearest);
}

Float HostConversion::widen(llvm::Value *stored, mlir::Type storageType) {
  llvm::Value *known = storageType.isF16() ? nullptr : rounded.lookup(stored);
  return known ? Float(known) : Conversion::widen(stored, storageType);
}

Float HostConversion::shared(Float value) {
  return shortensShared && lanesOf(value.value()) == 0 ? Float(withShortNan(value.value())) : value;
}

llvm::Value *HostConversion::round(Float value, mlir::Type storageType) {
  llvm::IRBuilder<> &b = EmissionScope::builder();
  if (storageType.isF16())
    return roundByTarget(value, b.getHalfTy());
  llvm::Value *v = value.value();
  Unsigned bits(b.CreateBitCast(v, typeLike(b.getInt32Ty(), v)));
  llvm::Value *inF32 = v;
  if (!isWidenedBf16(v)) {
    Unsigned nearest = roundedUpperHalf(bits);
    bits = hasShortNan(v) ? nearest : select(value != value, bits | Unsigned(0x400000), nearest);
    inF32 = b.CreateBitCast((bits & Unsigned(upperHalf)).value(), v->getType());
  }
  llvm::Value *stored = upperHalves(bits.value());
  if (!llvm::isa<llvm::Constant>(stored))
    rounded[stored] = inF32;
  return stored;
}

} // namespace mpc::codegen
