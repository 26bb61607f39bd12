// Arithmetic of integers, which wraps: what kernels and generated code apply.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc::scalar {

/// The type of the same width whose arithmetic wraps.
template <typename I>
struct IntegerTraits;

template <>
struct IntegerTraits<std::int32_t> {
  using Wrapping = std::uint32_t;
};
template <>
struct IntegerTraits<std::int64_t> {
  using Wrapping = std::uint64_t;
};

template <typename I>
using WrappingOf = typename IntegerTraits<I>::Wrapping;

struct IntAddOp {
  template <typename I>
  MPC_HOST_DEVICE static I Apply(I a, I b) {
    return I(WrappingOf<I>(a) + WrappingOf<I>(b));
  }
};
struct IntSubOp {
  template <typename I>
  MPC_HOST_DEVICE static I Apply(I a, I b) {
    return I(WrappingOf<I>(a) - WrappingOf<I>(b));
  }
};
struct IntMulOp {
  template <typename I>
  MPC_HOST_DEVICE static I Apply(I a, I b) {
    return I(WrappingOf<I>(a) * WrappingOf<I>(b));
  }
};
struct IntMaximumOp {
  template <typename I>
  MPC_HOST_DEVICE static I Apply(I a, I b) {
    return Select(a > b, a, b);
  }
};
struct IntMinimumOp {
  template <typename I>
  MPC_HOST_DEVICE static I Apply(I a, I b) {
    return Select(a < b, a, b);
  }
};
struct IntNegOp {
  template <typename I>
  MPC_HOST_DEVICE static I Apply(I a) {
    const I zero = 0;
    return IntSubOp::Apply(zero, a);
  }
};
struct IntAbsOp {
  template <typename I>
  MPC_HOST_DEVICE static I Apply(I a) {
    const I zero = 0;
    return Select(a < zero, IntNegOp::Apply(a), a);
  }
};
/// The quotient, rounded towards minus infinity; 0 where b is 0.
struct IntFloorDivOp {
  template <typename I>
  MPC_HOST_DEVICE static I Apply(I a, I b) {
    const I minus_one = -1, zero = 0, one = 1;
    // Nothing may be divided by 0, nor the least number by -1.
    const I divisor = Select((b == zero) | (b == minus_one), one, b);
    const I truncated = a / divisor;
    const I rest = a - truncated * divisor;
    const I quotient = truncated - Select((rest != zero) & ((rest ^ divisor) < zero), one, zero);
    return Select(b == zero, zero, Select(b == minus_one, IntNegOp::Apply(a), quotient));
  }
};
/// a - floor_div(a, b) * b: it has the sign of b, and is a where b is 0.
struct IntModOp {
  template <typename I>
  MPC_HOST_DEVICE static I Apply(I a, I b) {
    return IntSubOp::Apply(a, IntMulOp::Apply(IntFloorDivOp::Apply(a, b), b));
  }
};

/// Calls visit.operator()<Op>(mnemonic) for each operation of two integers.
template <typename Visit>
void ForEachIntegerBinary(const Visit& visit) {
  visit.template operator()<IntAddOp>("int_add");
  visit.template operator()<IntSubOp>("int_sub");
  visit.template operator()<IntMulOp>("int_mul");
  visit.template operator()<IntFloorDivOp>("int_floor_div");
  visit.template operator()<IntModOp>("int_mod");
  visit.template operator()<IntMaximumOp>("int_maximum");
  visit.template operator()<IntMinimumOp>("int_minimum");
}
/// The same for each operation of one integer.
template <typename Visit>
void ForEachIntegerUnary(const Visit& visit) {
  visit.template operator()<IntNegOp>("int_neg");
  visit.template operator()<IntAbsOp>("int_abs");
}

}  // namespace mpc::scalar
