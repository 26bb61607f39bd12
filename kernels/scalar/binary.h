// Element-wise operations of two f32 elements and their derivatives: what kernels and generated code apply.
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc::scalar {

struct AddOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F a, F b) {
    return a + b;
  }
};
struct SubOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F a, F b) {
    return a - b;
  }
};
struct MulOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F a, F b) {
    return a * b;
  }
};
struct DivOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F a, F b) {
    return a / b;
  }
};
// NaN if either is: a NaN in a makes `a > b` false and `b == b` true, hence the order of the tests.
struct MaximumOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F a, F b) {
    return Select((a > b) | (a != a), a, b);
  }
};
// NaN as in MaximumOp.
struct MinimumOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F a, F b) {
    return Select((a < b) | (a != a), a, b);
  }
};

/// The gradient of b alone; operands dy, y and b.
struct DivGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F First(F dy, F y, F b) {
    return -dy * y / b;
  }
  template <typename F>
  MPC_HOST_DEVICE static F Second(F, F, F) {
    return 0.0f;
  }
};

/// The gradients of a and b; operands dy, a and b. Equal operands share the gradient.
struct MaximumGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F First(F dy, F a, F b) {
    return Select(a > b, dy, Select(a == b, 0.5f * dy, 0.0f));
  }
  template <typename F>
  MPC_HOST_DEVICE static F Second(F dy, F a, F b) {
    return First(dy, b, a);
  }
};
struct MinimumGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F First(F dy, F a, F b) {
    return Select(a < b, dy, Select(a == b, 0.5f * dy, 0.0f));
  }
  template <typename F>
  MPC_HOST_DEVICE static F Second(F dy, F a, F b) {
    return First(dy, b, a);
  }
};

struct EqualOp {
  template <typename T>
  MPC_HOST_DEVICE static auto Apply(T a, T b) {
    return a == b;
  }
};
struct GreaterOp {
  template <typename T>
  MPC_HOST_DEVICE static auto Apply(T a, T b) {
    return a > b;
  }
};
struct LessOp {
  template <typename T>
  MPC_HOST_DEVICE static auto Apply(T a, T b) {
    return a < b;
  }
};
struct NotEqualOp {
  template <typename T>
  MPC_HOST_DEVICE static auto Apply(T a, T b) {
    return a != b;
  }
};
struct GreaterEqualOp {
  template <typename T>
  MPC_HOST_DEVICE static auto Apply(T a, T b) {
    return a >= b;
  }
};
struct LessEqualOp {
  template <typename T>
  MPC_HOST_DEVICE static auto Apply(T a, T b) {
    return a <= b;
  }
};

/// Calls visit.operator()<Op>(mnemonic) for each comparison.
template <typename Visit>
void ForEachComparison(const Visit& visit) {
  visit.template operator()<EqualOp>("equal");
  visit.template operator()<GreaterOp>("greater");
  visit.template operator()<LessOp>("less");
  visit.template operator()<NotEqualOp>("not_equal");
  visit.template operator()<GreaterEqualOp>("greater_equal");
  visit.template operator()<LessEqualOp>("less_equal");
}

/// The operands are truth values.
struct LogicalAndOp {
  template <typename B>
  MPC_HOST_DEVICE static B Apply(B a, B b) {
    return a & b;
  }
};
struct LogicalOrOp {
  template <typename B>
  MPC_HOST_DEVICE static B Apply(B a, B b) {
    return a | b;
  }
};
struct LogicalNotOp {
  template <typename B>
  MPC_HOST_DEVICE static B Apply(B a) {
    return !a;
  }
};

}  // namespace mpc::scalar
