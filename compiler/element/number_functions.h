// The functions of kernels/scalar/number.h over numbers that emit instructions. They are found by argument-dependent
// lookup from the arithmetic of kernels/scalar and therefore have its names.
#pragma once

#include "compiler/element/number.h"
#include "kernels/scalar/integer.h"
#include "kernels/scalar/number.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicsX86.h"

#include <numeric>

namespace mpc::scalar {

template <> struct NumberTraits<codegen::Float> {
  using Wide = codegen::Double;
  using Integer = codegen::Int;
  using Unsigned = codegen::Unsigned;
};

template <> struct IntegerTraits<codegen::Long> { using Wrapping = codegen::UnsignedLong; };

} // namespace mpc::scalar

namespace mpc::codegen {

// One function a type, so that constants convert.
inline Float Select(Bool condition, Float a, Float b) { return select(condition, a, b); }
inline Double Select(Bool condition, Double a, Double b) { return select(condition, a, b); }
inline Unsigned Select(Bool condition, Unsigned a, Unsigned b) { return select(condition, a, b); }
inline Long Select(Bool condition, Long a, Long b) { return select(condition, a, b); }
inline Bool Select(Bool condition, Bool a, Bool b) { return select(condition, a, b); }

/// llvm.fma: rounded once, on every target.
inline Float Fma(Float a, Float b, Float c) {
  unsigned lanes = std::max({lanesOf(a.value()), lanesOf(b.value()), lanesOf(c.value())});
  llvm::Value *operands[] = {spread(a.value(), lanes), spread(b.value(), lanes), spread(c.value(), lanes)};
  return Float(EmissionScope::builder().CreateIntrinsic(operands[0]->getType(), llvm::Intrinsic::fma, operands));
}
inline Float Sqrt(Float x) {
  return Float(EmissionScope::builder().CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x.value()));
}
inline Float Abs(Float x) {
  return Float(EmissionScope::builder().CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.value()));
}
inline Float Floor(Float x) {
  return Float(EmissionScope::builder().CreateUnaryIntrinsic(llvm::Intrinsic::floor, x.value()));
}
inline Float CopySign(Float magnitude, Float sign) {
  auto [l, r] = matched(magnitude, sign);
  return Float(EmissionScope::builder().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, l, r));
}

inline Unsigned BitsOf(Float x) {
  llvm::IRBuilder<> &builder = EmissionScope::builder();
  return Unsigned(builder.CreateBitCast(x.value(), typeLike(builder.getInt32Ty(), x.value())));
}
inline Float FloatFromBits(Unsigned bits) {
  return Float(EmissionScope::builder().CreateBitCast(bits.value(), typeLike(Float::scalarType(), bits.value())));
}

inline Float ToFloat(Int x) {
  return Float(EmissionScope::builder().CreateSIToFP(x.value(), typeLike(Float::scalarType(), x.value())));
}
inline Float ToFloat(Unsigned x) {
  return Float(EmissionScope::builder().CreateUIToFP(x.value(), typeLike(Float::scalarType(), x.value())));
}
inline Float ToFloat(Long x) {
  return Float(EmissionScope::builder().CreateSIToFP(x.value(), typeLike(Float::scalarType(), x.value())));
}
inline Float ToFloat(Double x) {
  return Float(EmissionScope::builder().CreateFPTrunc(x.value(), typeLike(Float::scalarType(), x.value())));
}
inline Float ToFloat(Bool x) {
  return Float(EmissionScope::builder().CreateUIToFP(x.value(), typeLike(Float::scalarType(), x.value())));
}
inline Double ToDouble(Float x) {
  return Double(EmissionScope::builder().CreateFPExt(x.value(), typeLike(Double::scalarType(), x.value())));
}
inline Double ToDouble(Long x) {
  return Double(EmissionScope::builder().CreateSIToFP(x.value(), typeLike(Double::scalarType(), x.value())));
}

/// Truncated towards zero to an integer of \p bits bits; beyond its range the limits, of NaN 0: scalar::Saturate.
inline Long Truncated(Float x, unsigned bits) {
  llvm::IRBuilder<> &builder = EmissionScope::builder();
  llvm::Type *narrow = typeLike(builder.getIntNTy(bits), x.value());
  llvm::Value *v = builder.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {narrow, x.value()->getType()}, {x.value()});
  return Long(builder.CreateSExt(v, typeLike(builder.getInt64Ty(), x.value())));
}

/// Uses one instruction where the host has it. It gives the same bits, since it rounds once, too.
inline Float TimesPowerOfTwo(Float value, Float shifted) {
  llvm::IRBuilder<> &builder = EmissionScope::builder();
  auto [v, s] = matched(value, shifted);
  llvm::Function *function = builder.GetInsertBlock()->getParent();
  constexpr unsigned lanes = 16;
  if (lanesOf(v) == 0 || lanesOf(v) % lanes != 0 ||
      function->getFnAttribute("target-cpu").getValueAsString() != "x86-64-v4")
    return scalar::TimesPowerOfTwo<Float>(Float(v), Float(s));
  llvm::Value *power = (Float(s) - scalar::kRoundingShift).value();
  constexpr int roundAsSet = 4;
  auto scale = [&](llvm::Value *x, llvm::Value *n) -> llvm::Value * {
    return builder.CreateIntrinsic(x->getType(), llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
                                   {x, n, x, builder.getInt16(0xffff), builder.getInt32(roundAsSet)});
  };
  if (lanesOf(v) == lanes)
    return Float(scale(v, power));
  llvm::SmallVector<llvm::Value *, 2> pieces;
  for (unsigned first = 0; first < lanesOf(v); first += lanes) {
    llvm::SmallVector<int, lanes> piece(lanes);
    std::iota(piece.begin(), piece.end(), first);
    pieces.push_back(scale(builder.CreateShuffleVector(v, piece), builder.CreateShuffleVector(power, piece)));
  }
  return Float(llvm::concatenateVectors(builder, pieces));
}

/// The lower 32 bits.
inline Unsigned Low(Long x) {
  llvm::IRBuilder<> &builder = EmissionScope::builder();
  return Unsigned(builder.CreateTrunc(x.value(), typeLike(builder.getInt32Ty(), x.value())));
}
/// The upper 32 bits.
inline Unsigned High(Long x) { return Low(Long(UnsignedLong(x) >> UnsignedLong(32))); }

inline scalar::WideProduct<Unsigned> MultiplyWide(Unsigned a, Unsigned b) {
  llvm::IRBuilder<> &builder = EmissionScope::builder();
  auto [l, r] = matched(a, b);
  llvm::Type *wide = typeLike(builder.getInt64Ty(), l);
  Long product(builder.CreateMul(builder.CreateZExt(l, wide), builder.CreateZExt(r, wide)));
  return {High(product), Low(product)};
}

} // namespace mpc::codegen
