// One element of a long short-term memory cell and of its derivatives, in f32: the same bits on every device.
//
// The cell is that of Hochreiter and Schmidhuber 1997, "Long short-term memory". It has the forget gate of Gers,
// Schmidhuber and Cummins 2000, "Learning to forget: continual prediction with LSTM". Gates do not read the cell state.
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::scalar {

struct LstmElement {
  float input, forget, candidate, output;  ///< the activated gates
  float cell, hidden;

  /// Computes the element from the gates' sums and the cell state `c`.
  [[gnu::always_inline]] MPC_HOST_DEVICE static inline LstmElement Create(float i, float f, float g, float o, float c) {
    LstmElement element;
    element.input = Sigmoid(i);
    element.forget = Sigmoid(f);
    element.candidate = Tanh(g);
    element.output = Sigmoid(o);
    element.cell = element.forget * c + element.input * element.candidate;
    element.hidden = element.output * Tanh(element.cell);
    return element;
  }
};

struct LstmElementGrad {
  float input, forget, candidate, output;  ///< derivatives by the gates' sums
  float cell;                              ///< derivative by the old cell state

  /// Computes the gradients from those of the hidden and the new cell state, the activated gates, and the old and the
  /// new cell state.
  [[gnu::always_inline]] MPC_HOST_DEVICE static inline LstmElementGrad Create(float dhidden, float dnext, float i,
                                                                              float f, float g, float o, float c,
                                                                              float next) {
    const float t = Tanh(next);
    const float dcell = dnext + dhidden * o * (1.0f - t * t);
    LstmElementGrad element;
    element.input = dcell * g * i * (1.0f - i);
    element.forget = dcell * c * f * (1.0f - f);
    element.candidate = dcell * i * (1.0f - g * g);
    element.output = dhidden * t * o * (1.0f - o);
    element.cell = dcell * f;
    return element;
  }
};

}  // namespace mpc::scalar
