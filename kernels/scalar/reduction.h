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

/// A candidate for a minimum that a NaN wins and keeps.
template <typename F>
MPC_HOST_DEVICE inline F Smaller(F candidate, F smallest) {
  return Select((candidate < smallest) | (candidate != candidate), candidate, smallest);
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

/// The smallest value; a NaN counts as the smallest.
struct MinimumOrNanOp {
  using Value = float;
  MPC_HOST_DEVICE static float Identity() { return std::numeric_limits<float>::infinity(); }
  template <typename F>
  MPC_HOST_DEVICE static F Combine(F a, F b) {
    return Smaller(b, a);
  }
};

struct ProductOp {
  using Value = float;
  MPC_HOST_DEVICE static float Identity() { return 1.0f; }
  MPC_HOST_DEVICE static float Combine(float a, float b) { return a * b; }
};

/// The product of the elements that are not 0, and how many are: what derivatives of a product are made of.
struct FactorsOp {
  struct Value {
    float product;
    std::int32_t zeros;  ///< 0, 1, or 2 for more
  };
  MPC_HOST_DEVICE static Value Identity() { return {1.0f, 0}; }
  MPC_HOST_DEVICE static Value Of(float x) { return x == 0.0f ? Value{1.0f, 1} : Value{x, 0}; }
  MPC_HOST_DEVICE static Value Combine(Value a, Value b) {
    return {a.product * b.product, a.zeros + b.zeros > 2 ? 2 : a.zeros + b.zeros};
  }
  /// The product of all elements but `x`, which is one of them.
  MPC_HOST_DEVICE static float Without(Value all, float x) {
    if (x == 0.0f) return all.zeros == 1 ? all.product : 0.0f;
    return all.zeros == 0 ? all.product / x : 0.0f;
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
