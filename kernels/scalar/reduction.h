// Associative operations of reductions. Identity() is a value that changes nothing, and Combine(a, b) is what two
// values are together. F is float, or a number of the code generator (number.h).
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc::scalar {

/// A candidate for a maximum that a NaN wins and keeps.
template <typename F>
MPC_HOST_DEVICE inline F Larger(F candidate, F largest) {
  return Select((candidate > largest) | (candidate != candidate), candidate, largest);
}

template <typename T>
struct SumOp {
  using Value = T;
  MPC_HOST_DEVICE static T Identity() { return T(0); }
  MPC_HOST_DEVICE static T Combine(T a, T b) { return a + b; }
};

/// The largest number. Combine passes over a NaN `b` and keeps a NaN `a`, so `a` begins as Identity().
struct MaxNumOp {
  using Value = float;
  MPC_HOST_DEVICE static float Identity() { return -std::numeric_limits<float>::infinity(); }
  template <typename F>
  MPC_HOST_DEVICE static F Combine(F a, F b) {
    return Select(b > a, b, a);
  }
};

/// The largest value; a NaN counts as the largest.
struct MaximumOrNanOp {
  using Value = float;
  MPC_HOST_DEVICE static float Identity() { return -std::numeric_limits<float>::infinity(); }
  template <typename F>
  MPC_HOST_DEVICE static F Combine(F a, F b) {
    return Larger(b, a);
  }
};

/// The position of the largest value, the first of equals. A NaN counts as the largest.
struct ArgmaxOp {
  struct Value {
    float value;
    std::int32_t index;  ///< -1: none
  };
  MPC_HOST_DEVICE static Value Identity() { return {-std::numeric_limits<float>::infinity(), -1}; }
  MPC_HOST_DEVICE static Value Combine(Value a, Value b) {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool a_nan = a.value != a.value;
    const bool b_nan = b.value != b.value;
    const bool equal = a_nan ? b_nan : a.value == b.value;
    if (equal) return a.index < b.index ? a : b;
    return b_nan || b.value > a.value ? b : a;
  }
};

}  // namespace mpc::scalar
