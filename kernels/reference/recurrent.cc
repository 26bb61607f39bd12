// The gates of a long short-term memory cell and their derivatives.
#include <cmath>

#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

// Calls `visit(state, i, f, g, o)` for every element of the cell state, with the indices of its four gates.
template <typename Visit>
void VisitGates(const Shape& state_shape, Visit visit) {
  const auto rows = static_cast<std::size_t>(state_shape[0]);
  const auto width = static_cast<std::size_t>(state_shape[1]);
  for (std::size_t n = 0; n < rows; ++n) {
    for (std::size_t h = 0; h < width; ++h) {
      const std::size_t input = 4 * n * width + h;
      visit(n * width + h, input, input + width, input + 2 * width, input + 3 * width);
    }
  }
}

void LstmCell(const Attributes&, Inputs inputs, Outputs outputs) {
  const std::vector<double>& gates = inputs[0].values;
  std::vector<double>& a = outputs[2].values;
  VisitGates(inputs[1].spec.shape, [&](std::size_t state, std::size_t i, std::size_t f, std::size_t g, std::size_t o) {
    a[i] = Activate(Activation::kSigmoid, gates[i]);
    a[f] = Activate(Activation::kSigmoid, gates[f]);
    a[g] = Activate(Activation::kTanh, gates[g]);
    a[o] = Activate(Activation::kSigmoid, gates[o]);
    const double cell = a[f] * inputs[1].values[state] + a[i] * a[g];
    outputs[0].values[state] = a[o] * std::tanh(cell);
    outputs[1].values[state] = cell;
  });
}

void LstmCellGrad(const Attributes&, Inputs inputs, Outputs outputs) {
  const std::vector<double>& a = inputs[2].values;
  std::vector<double>& dgates = outputs[0].values;
  VisitGates(inputs[3].spec.shape, [&](std::size_t state, std::size_t i, std::size_t f, std::size_t g, std::size_t o) {
    const double dhidden = inputs[0].values[state];
    const double t = std::tanh(inputs[4].values[state]);
    const double dcell = inputs[1].values[state] + dhidden * a[o] * (1 - t * t);
    dgates[i] = dcell * a[g] * a[i] * (1 - a[i]);
    dgates[f] = dcell * inputs[3].values[state] * a[f] * (1 - a[f]);
    dgates[g] = dcell * a[i] * (1 - a[g] * a[g]);
    dgates[o] = dhidden * t * a[o] * (1 - a[o]);
    outputs[1].values[state] = dcell * a[f];
  });
}

constexpr NamedFunction kTable[] = {{"lstm_cell", LstmCell}, {"lstm_cell_grad", LstmCellGrad}};

}  // namespace

FunctionTable RecurrentFunctions() { return kTable; }

}  // namespace mpc::reference
