// Arithmetic of integers. Operands and results lie in 53 bits; the results of i32 wrap.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

using Integer = std::int64_t;

std::uint64_t Bits(Integer a) { return static_cast<std::uint64_t>(a); }

Integer Add(Integer a, Integer b) { return static_cast<Integer>(Bits(a) + Bits(b)); }
Integer Sub(Integer a, Integer b) { return static_cast<Integer>(Bits(a) - Bits(b)); }
Integer Mul(Integer a, Integer b) { return static_cast<Integer>(Bits(a) * Bits(b)); }
Integer Neg(Integer a) { return Sub(0, a); }
Integer Abs(Integer a) { return a < 0 ? Neg(a) : a; }
Integer FloorDiv(Integer a, Integer b) {
  if (b == 0) return 0;
  if (b == -1) return Neg(a);
  const Integer quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
Integer Mod(Integer a, Integer b) { return Sub(a, Mul(FloorDiv(a, b), b)); }
Integer Maximum(Integer a, Integer b) { return std::max(a, b); }
Integer Minimum(Integer a, Integer b) { return std::min(a, b); }

double Wrapped(DType dtype, Integer value) {
  return static_cast<double>(dtype == DType::kI32 ? static_cast<std::int32_t>(value) : value);
}

template <Integer (*formula)(Integer, Integer)>
void IntegerBinary(const Attributes&, Inputs inputs, Outputs outputs) {
  const TensorSpec& y = outputs[0].spec;
  const std::vector<std::size_t> a = BroadcastIndices(inputs[0].spec.shape, y.shape);
  const std::vector<std::size_t> b = BroadcastIndices(inputs[1].spec.shape, y.shape);
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = Wrapped(
        y.dtype, formula(static_cast<Integer>(inputs[0].values[a[i]]), static_cast<Integer>(inputs[1].values[b[i]])));
  }
}

template <Integer (*formula)(Integer)>
void IntegerUnary(const Attributes&, Inputs inputs, Outputs outputs) {
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = Wrapped(outputs[0].spec.dtype, formula(static_cast<Integer>(inputs[0].values[i])));
  }
}

constexpr NamedFunction kTable[] = {
    {"int_add", IntegerBinary<Add>},         {"int_sub", IntegerBinary<Sub>},
    {"int_mul", IntegerBinary<Mul>},         {"int_floor_div", IntegerBinary<FloorDiv>},
    {"int_mod", IntegerBinary<Mod>},         {"int_maximum", IntegerBinary<Maximum>},
    {"int_minimum", IntegerBinary<Minimum>}, {"int_neg", IntegerUnary<Neg>},
    {"int_abs", IntegerUnary<Abs>},
};

}  // namespace

FunctionTable IntegerFunctions() { return kTable; }

}  // namespace mpc::reference
