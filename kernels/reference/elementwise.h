// Tables of element-wise operations are made of formulas.
#pragma once

#include "kernels/reference/functions.h"

namespace mpc::reference {

/// Applies `formula` to every element of inputs[0] and writes outputs[0], which has its shape.
template <double (*formula)(double)>
void Unary(const Attributes&, Inputs inputs, Outputs outputs) {
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) outputs[0].values[i] = formula(inputs[0].values[i]);
}

/// Applies `formula` to inputs[0] and inputs[1], which are broadcast to the shape of outputs[0].
template <double (*formula)(double, double)>
void Binary(const Attributes&, Inputs inputs, Outputs outputs) {
  const std::vector<std::size_t> a = BroadcastIndices(inputs[0].spec.shape, outputs[0].spec.shape);
  const std::vector<std::size_t> b = BroadcastIndices(inputs[1].spec.shape, outputs[0].spec.shape);
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = formula(inputs[0].values[a[i]], inputs[1].values[b[i]]);
  }
}

}  // namespace mpc::reference
