// Numbers that emit instructions: the operators and functions of kernels/scalar, over LLVM values.
//
// The arithmetic of kernels/scalar is written for any type with these operations, so generated code does what the
// kernels do, operation by operation. A number is a scalar or a vector of them; a scalar that meets a vector is spread
// over it. No instruction carries fast-math flags: what a compiler may pair or reorder would change bits.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

#include <cstdint>

namespace mpc::codegen {

/// Sets the builder that instructions go to while it lives. Emission is single-threaded within one LLVMContext; threads
/// with contexts of their own each have one.
class EmissionScope {
public:
  explicit EmissionScope(llvm::IRBuilder<> &Builder) : Outer(Current) { Current = &Builder; }
  ~EmissionScope() { Current = Outer; }
  EmissionScope(const EmissionScope &) = delete;
  EmissionScope &operator=(const EmissionScope &) = delete;

  static llvm::IRBuilder<> &builder() {
    assert(Current && "numbers are made inside an EmissionScope");
    return *Current;
  }

private:
  static inline thread_local llvm::IRBuilder<> *Current = nullptr;
  llvm::IRBuilder<> *Outer;
};

/// Lanes of \p V; 0 for a scalar.
inline unsigned lanesOf(llvm::Value *V) {
  auto *Vector = llvm::dyn_cast<llvm::FixedVectorType>(V->getType());
  return Vector ? Vector->getNumElements() : 0;
}

/// \p V with \p Lanes lanes.
inline llvm::Value *spread(llvm::Value *V, unsigned Lanes) {
  return Lanes == 0 || lanesOf(V) == Lanes ? V : EmissionScope::builder().CreateVectorSplat(Lanes, V);
}

/// \p ScalarType with the lanes of \p Like.
inline llvm::Type *typeLike(llvm::Type *ScalarType, llvm::Value *Like) {
  unsigned Lanes = lanesOf(Like);
  return Lanes == 0 ? ScalarType : llvm::FixedVectorType::get(ScalarType, Lanes);
}

/// The base of every kind of number: it holds a value.
class Number {
public:
  explicit Number(llvm::Value *V) : V(V) {}
  llvm::Value *value() const { return V; }

protected:
  llvm::Value *V;
};

/// Brings two operands to the same lanes.
inline std::pair<llvm::Value *, llvm::Value *> matched(const Number &A, const Number &B) {
  unsigned Lanes = std::max(lanesOf(A.value()), lanesOf(B.value()));
  return {spread(A.value(), Lanes), spread(B.value(), Lanes)};
}

/// A truth value.
class Bool : public Number {
public:
  using Number::Number;
  Bool(bool Constant) : Number(EmissionScope::builder().getInt1(Constant)) {}
  friend Bool operator&(Bool A, Bool B) {
    auto [L, R] = matched(A, B);
    return Bool(EmissionScope::builder().CreateAnd(L, R));
  }
  friend Bool operator|(Bool A, Bool B) {
    auto [L, R] = matched(A, B);
    return Bool(EmissionScope::builder().CreateOr(L, R));
  }
  friend Bool operator!(Bool A) { return Bool(EmissionScope::builder().CreateNot(A.V)); }
};

/// An integer of 32 or 64 bits, signed or not: what kernels/scalar does with the bits of an f32 or f64.
template <unsigned Bits, bool Signed> class Integer : public Number {
public:
  using Number::Number;
  Integer(std::int64_t Constant)
      : Number(EmissionScope::builder().getIntN(Bits, static_cast<std::uint64_t>(Constant) & (~0ull >> (64 - Bits)))) {}
  template <bool Other> explicit Integer(Integer<Bits, Other> Same) : Number(Same.value()) {}

#define MPC_INTEGER_OPERATOR(Op, Create)                                                                               \
  friend Integer operator Op(Integer A, Integer B) {                                                                   \
    auto [L, R] = matched(A, B);                                                                                       \
    return Integer(EmissionScope::builder().Create(L, R));                                                             \
  }
  MPC_INTEGER_OPERATOR(+, CreateAdd)
  MPC_INTEGER_OPERATOR(-, CreateSub)
  MPC_INTEGER_OPERATOR(*, CreateMul)
  MPC_INTEGER_OPERATOR(&, CreateAnd)
  MPC_INTEGER_OPERATOR(|, CreateOr)
  MPC_INTEGER_OPERATOR(^, CreateXor)
  MPC_INTEGER_OPERATOR(<<, CreateShl)
#undef MPC_INTEGER_OPERATOR
  friend Integer operator>>(Integer A, Integer B) {
    auto [L, R] = matched(A, B);
    return Integer(Signed ? EmissionScope::builder().CreateAShr(L, R) : EmissionScope::builder().CreateLShr(L, R));
  }

#define MPC_INTEGER_COMPARISON(Op, SignedPredicate, UnsignedPredicate)                                                 \
  friend Bool operator Op(Integer A, Integer B) {                                                                      \
    auto [L, R] = matched(A, B);                                                                                       \
    return Bool(EmissionScope::builder().CreateICmp(                                                                   \
        Signed ? llvm::CmpInst::SignedPredicate : llvm::CmpInst::UnsignedPredicate, L, R));                            \
  }
  MPC_INTEGER_COMPARISON(==, ICMP_EQ, ICMP_EQ)
  MPC_INTEGER_COMPARISON(!=, ICMP_NE, ICMP_NE)
  MPC_INTEGER_COMPARISON(<, ICMP_SLT, ICMP_ULT)
  MPC_INTEGER_COMPARISON(>, ICMP_SGT, ICMP_UGT)
  MPC_INTEGER_COMPARISON(<=, ICMP_SLE, ICMP_ULE)
  MPC_INTEGER_COMPARISON(>=, ICMP_SGE, ICMP_UGE)
#undef MPC_INTEGER_COMPARISON
};

using Int = Integer<32, true>;
using Unsigned = Integer<32, false>;
using Long = Integer<64, true>;
using UnsignedLong = Integer<64, false>;

/// An f32 (Width 32) or f64 (Width 64) number.
template <unsigned Width> class Floating : public Number {
public:
  using Number::Number;
  Floating(double Constant) : Number(llvm::ConstantFP::get(scalarType(), Constant)) {}

  static llvm::Type *scalarType() {
    return Width == 32 ? EmissionScope::builder().getFloatTy() : EmissionScope::builder().getDoubleTy();
  }

#define MPC_FLOATING_OPERATOR(Op, Create)                                                                              \
  friend Floating operator Op(Floating A, Floating B) {                                                                \
    auto [L, R] = matched(A, B);                                                                                       \
    return Floating(EmissionScope::builder().Create(L, R));                                                            \
  }
  MPC_FLOATING_OPERATOR(+, CreateFAdd)
  MPC_FLOATING_OPERATOR(-, CreateFSub)
  MPC_FLOATING_OPERATOR(*, CreateFMul)
  MPC_FLOATING_OPERATOR(/, CreateFDiv)
#undef MPC_FLOATING_OPERATOR
  friend Floating operator-(Floating A) { return Floating(EmissionScope::builder().CreateFNeg(A.V)); }

  // Ordered comparisons are false for NaN, and `!=` is true: as in C++.
#define MPC_FLOATING_COMPARISON(Op, Predicate)                                                                         \
  friend Bool operator Op(Floating A, Floating B) {                                                                    \
    auto [L, R] = matched(A, B);                                                                                       \
    return Bool(EmissionScope::builder().CreateFCmp(llvm::CmpInst::Predicate, L, R));                                  \
  }
  MPC_FLOATING_COMPARISON(==, FCMP_OEQ)
  MPC_FLOATING_COMPARISON(!=, FCMP_UNE)
  MPC_FLOATING_COMPARISON(<, FCMP_OLT)
  MPC_FLOATING_COMPARISON(>, FCMP_OGT)
  MPC_FLOATING_COMPARISON(<=, FCMP_OLE)
  MPC_FLOATING_COMPARISON(>=, FCMP_OGE)
#undef MPC_FLOATING_COMPARISON
};

using Float = Floating<32>;
using Double = Floating<64>;

/// A where \p Condition holds, else B.
template <typename T> T select(Bool Condition, T A, T B) {
  unsigned Lanes = std::max({lanesOf(Condition.value()), lanesOf(A.value()), lanesOf(B.value())});
  return T(EmissionScope::builder().CreateSelect(spread(Condition.value(), Lanes), spread(A.value(), Lanes),
                                                 spread(B.value(), Lanes)));
}

} // namespace mpc::codegen
