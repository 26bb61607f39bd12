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
  explicit EmissionScope(llvm::IRBuilder<> &builder) : outer(current) { current = &builder; }
  ~EmissionScope() { current = outer; }
  EmissionScope(const EmissionScope &) = delete;
  EmissionScope &operator=(const EmissionScope &) = delete;

  static llvm::IRBuilder<> &builder() {
    assert(current && "numbers are made inside an EmissionScope");
    return *current;
  }

private:
  static inline thread_local llvm::IRBuilder<> *current = nullptr;
  llvm::IRBuilder<> *outer;
};

/// Lanes of \p v; 0 for a scalar.
inline unsigned lanesOf(llvm::Value *v) {
  auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector ? vector->getNumElements() : 0;
}

/// \p v with \p lanes lanes.
inline llvm::Value *spread(llvm::Value *v, unsigned lanes) {
  return lanes == 0 || lanesOf(v) == lanes ? v : EmissionScope::builder().CreateVectorSplat(lanes, v);
}

/// \p scalarType with the lanes of \p like.
inline llvm::Type *typeLike(llvm::Type *scalarType, llvm::Value *like) {
  unsigned lanes = lanesOf(like);
  return lanes == 0 ? scalarType : llvm::FixedVectorType::get(scalarType, lanes);
}

/// The base of every kind of number: it holds a value.
class Number {
public:
  explicit Number(llvm::Value *v) : v(v) {}
  llvm::Value *value() const { return v; }

protected:
  llvm::Value *v;
};

/// Brings two operands to the same lanes.
inline std::pair<llvm::Value *, llvm::Value *> matched(const Number &a, const Number &b) {
  unsigned lanes = std::max(lanesOf(a.value()), lanesOf(b.value()));
  return {spread(a.value(), lanes), spread(b.value(), lanes)};
}

/// A truth value.
class Bool : public Number {
public:
  using Number::Number;
  Bool(bool constant) : Number(EmissionScope::builder().getInt1(constant)) {}
  friend Bool operator&(Bool a, Bool b) {
    auto [l, r] = matched(a, b);
    return Bool(EmissionScope::builder().CreateAnd(l, r));
  }
  friend Bool operator|(Bool a, Bool b) {
    auto [l, r] = matched(a, b);
    return Bool(EmissionScope::builder().CreateOr(l, r));
  }
  friend Bool operator!(Bool a) { return Bool(EmissionScope::builder().CreateNot(a.v)); }
};

/// An integer of 32 or 64 bits, signed or not: what kernels/scalar does with the bits of an f32 or f64.
template <unsigned Bits, bool Signed> class Integer : public Number {
public:
  using Number::Number;
  Integer(std::int64_t constant)
      : Number(EmissionScope::builder().getIntN(Bits, static_cast<std::uint64_t>(constant) & (~0ull >> (64 - Bits)))) {}
  template <bool Other> explicit Integer(Integer<Bits, Other> same) : Number(same.value()) {}

#define MPC_INTEGER_OPERATOR(Op, Create)                                                                               \
  friend Integer operator Op(Integer A, Integer B) {                                                                   \
    auto [l, r] = matched(A, B);                                                                                       \
    return Integer(EmissionScope::builder().Create(l, r));                                                             \
  }
  MPC_INTEGER_OPERATOR(+, CreateAdd)
  MPC_INTEGER_OPERATOR(-, CreateSub)
  MPC_INTEGER_OPERATOR(*, CreateMul)
  MPC_INTEGER_OPERATOR(&, CreateAnd)
  MPC_INTEGER_OPERATOR(|, CreateOr)
  MPC_INTEGER_OPERATOR(^, CreateXor)
  MPC_INTEGER_OPERATOR(<<, CreateShl)
#undef MPC_INTEGER_OPERATOR
  /// Rounds towards zero. \p b is not 0, nor is a the least number and b -1.
  friend Integer operator/(Integer a, Integer b) {
    auto [l, r] = matched(a, b);
    return Integer(Signed ? EmissionScope::builder().CreateSDiv(l, r) : EmissionScope::builder().CreateUDiv(l, r));
  }
  friend Integer operator>>(Integer a, Integer b) {
    auto [l, r] = matched(a, b);
    return Integer(Signed ? EmissionScope::builder().CreateAShr(l, r) : EmissionScope::builder().CreateLShr(l, r));
  }

#define MPC_INTEGER_COMPARISON(Op, SignedPredicate, UnsignedPredicate)                                                 \
  friend Bool operator Op(Integer A, Integer B) {                                                                      \
    auto [l, r] = matched(A, B);                                                                                       \
    return Bool(EmissionScope::builder().CreateICmp(                                                                   \
        Signed ? llvm::CmpInst::SignedPredicate : llvm::CmpInst::UnsignedPredicate, l, r));                            \
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
  Floating(double constant) : Number(llvm::ConstantFP::get(scalarType(), constant)) {}

  static llvm::Type *scalarType() {
    return Width == 32 ? EmissionScope::builder().getFloatTy() : EmissionScope::builder().getDoubleTy();
  }

#define MPC_FLOATING_OPERATOR(Op, Create)                                                                              \
  friend Floating operator Op(Floating A, Floating B) {                                                                \
    auto [l, r] = matched(A, B);                                                                                       \
    return Floating(EmissionScope::builder().Create(l, r));                                                            \
  }
  MPC_FLOATING_OPERATOR(+, CreateFAdd)
  MPC_FLOATING_OPERATOR(-, CreateFSub)
  MPC_FLOATING_OPERATOR(*, CreateFMul)
  MPC_FLOATING_OPERATOR(/, CreateFDiv)
#undef MPC_FLOATING_OPERATOR
  friend Floating operator-(Floating a) { return Floating(EmissionScope::builder().CreateFNeg(a.v)); }

  // Ordered comparisons are false for NaN, and `!=` is true: as in C++.
#define MPC_FLOATING_COMPARISON(Op, Predicate)                                                                         \
  friend Bool operator Op(Floating A, Floating B) {                                                                    \
    auto [l, r] = matched(A, B);                                                                                       \
    return Bool(EmissionScope::builder().CreateFCmp(llvm::CmpInst::Predicate, l, r));                                  \
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

/// A where \p condition holds, else B.
template <typename T> T select(Bool condition, T a, T b) {
  unsigned lanes = std::max({lanesOf(condition.value()), lanesOf(a.value()), lanesOf(b.value())});
  return T(EmissionScope::builder().CreateSelect(spread(condition.value(), lanes), spread(a.value(), lanes),
                                                 spread(b.value(), lanes)));
}

} // namespace mpc::codegen
