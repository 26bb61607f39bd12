// The functions of kernels/scalar/number.h over numbers that emit instructions. They are found by argument-dependent
// lookup from the arithmetic of kernels/scalar and therefore have its names.
#pragma once

#include "compiler/element/number.h"
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

} // namespace mpc::scalar

namespace mpc::codegen {

// One function a type, so that constants convert.
inline Float Select(Bool Condition, Float A, Float B) { return select(Condition, A, B); }
inline Double Select(Bool Condition, Double A, Double B) { return select(Condition, A, B); }
inline Unsigned Select(Bool Condition, Unsigned A, Unsigned B) { return select(Condition, A, B); }
inline Long Select(Bool Condition, Long A, Long B) { return select(Condition, A, B); }
inline Bool Select(Bool Condition, Bool A, Bool B) { return select(Condition, A, B); }

/// llvm.fma: rounded once, on every target.
inline Float Fma(Float A, Float B, Float C) {
  unsigned Lanes = std::max({lanesOf(A.value()), lanesOf(B.value()), lanesOf(C.value())});
  llvm::Value *Operands[] = {spread(A.value(), Lanes), spread(B.value(), Lanes), spread(C.value(), Lanes)};
  return Float(EmissionScope::builder().CreateIntrinsic(Operands[0]->getType(), llvm::Intrinsic::fma, Operands));
}
inline Float Sqrt(Float X) {
  return Float(EmissionScope::builder().CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, X.value()));
}
inline Float Abs(Float X) {
  return Float(EmissionScope::builder().CreateUnaryIntrinsic(llvm::Intrinsic::fabs, X.value()));
}
inline Float Floor(Float X) {
  return Float(EmissionScope::builder().CreateUnaryIntrinsic(llvm::Intrinsic::floor, X.value()));
}
inline Float CopySign(Float Magnitude, Float Sign) {
  auto [L, R] = matched(Magnitude, Sign);
  return Float(EmissionScope::builder().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, L, R));
}

inline Unsigned BitsOf(Float X) {
  llvm::IRBuilder<> &Builder = EmissionScope::builder();
  return Unsigned(Builder.CreateBitCast(X.value(), typeLike(Builder.getInt32Ty(), X.value())));
}
inline Float FloatFromBits(Unsigned Bits) {
  return Float(EmissionScope::builder().CreateBitCast(Bits.value(), typeLike(Float::scalarType(), Bits.value())));
}

inline Float ToFloat(Int X) {
  return Float(EmissionScope::builder().CreateSIToFP(X.value(), typeLike(Float::scalarType(), X.value())));
}
inline Float ToFloat(Unsigned X) {
  return Float(EmissionScope::builder().CreateUIToFP(X.value(), typeLike(Float::scalarType(), X.value())));
}
inline Float ToFloat(Long X) {
  return Float(EmissionScope::builder().CreateSIToFP(X.value(), typeLike(Float::scalarType(), X.value())));
}
inline Float ToFloat(Double X) {
  return Float(EmissionScope::builder().CreateFPTrunc(X.value(), typeLike(Float::scalarType(), X.value())));
}
inline Float ToFloat(Bool X) {
  return Float(EmissionScope::builder().CreateUIToFP(X.value(), typeLike(Float::scalarType(), X.value())));
}
inline Double ToDouble(Float X) {
  return Double(EmissionScope::builder().CreateFPExt(X.value(), typeLike(Double::scalarType(), X.value())));
}
inline Double ToDouble(Long X) {
  return Double(EmissionScope::builder().CreateSIToFP(X.value(), typeLike(Double::scalarType(), X.value())));
}

/// Truncated towards zero to an integer of \p Bits bits; beyond its range the limits, of NaN 0: scalar::Saturate.
inline Long Truncated(Float X, unsigned Bits) {
  llvm::IRBuilder<> &Builder = EmissionScope::builder();
  llvm::Type *Narrow = typeLike(Builder.getIntNTy(Bits), X.value());
  llvm::Value *V = Builder.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {Narrow, X.value()->getType()}, {X.value()});
  return Long(Builder.CreateSExt(V, typeLike(Builder.getInt64Ty(), X.value())));
}

/// Uses one instruction where the host has it. It gives the same bits, since it rounds once, too.
inline Float TimesPowerOfTwo(Float Value, Float Shifted) {
  llvm::IRBuilder<> &Builder = EmissionScope::builder();
  auto [V, S] = matched(Value, Shifted);
  llvm::Function *Function = Builder.GetInsertBlock()->getParent();
  constexpr unsigned Lanes = 16;
  if (lanesOf(V) == 0 || lanesOf(V) % Lanes != 0 ||
      Function->getFnAttribute("target-cpu").getValueAsString() != "x86-64-v4")
    return scalar::TimesPowerOfTwo<Float>(Float(V), Float(S));
  llvm::Value *Power = (Float(S) - scalar::kRoundingShift).value();
  constexpr int RoundAsSet = 4;
  auto Scale = [&](llvm::Value *X, llvm::Value *N) -> llvm::Value * {
    return Builder.CreateIntrinsic(X->getType(), llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
                                   {X, N, X, Builder.getInt16(0xffff), Builder.getInt32(RoundAsSet)});
  };
  if (lanesOf(V) == Lanes)
    return Float(Scale(V, Power));
  llvm::SmallVector<llvm::Value *, 2> Pieces;
  for (unsigned First = 0; First < lanesOf(V); First += Lanes) {
    llvm::SmallVector<int, Lanes> Piece(Lanes);
    std::iota(Piece.begin(), Piece.end(), First);
    Pieces.push_back(Scale(Builder.CreateShuffleVector(V, Piece), Builder.CreateShuffleVector(Power, Piece)));
  }
  return Float(llvm::concatenateVectors(Builder, Pieces));
}

/// The lower 32 bits.
inline Unsigned Low(Long X) {
  llvm::IRBuilder<> &Builder = EmissionScope::builder();
  return Unsigned(Builder.CreateTrunc(X.value(), typeLike(Builder.getInt32Ty(), X.value())));
}
/// The upper 32 bits.
inline Unsigned High(Long X) { return Low(Long(UnsignedLong(X) >> UnsignedLong(32))); }

inline scalar::WideProduct<Unsigned> MultiplyWide(Unsigned A, Unsigned B) {
  llvm::IRBuilder<> &Builder = EmissionScope::builder();
  auto [L, R] = matched(A, B);
  llvm::Type *Wide = typeLike(Builder.getInt64Ty(), L);
  Long Product(Builder.CreateMul(Builder.CreateZExt(L, Wide), Builder.CreateZExt(R, Wide)));
  return {High(Product), Low(Product)};
}

} // namespace mpc::codegen
