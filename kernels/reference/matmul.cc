// Matrix products: one with optional bias and activation, or one for each index of leading axes.
#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

void Matmul(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const bool transpose_a = attributes.GetBool("transpose_a");
  const bool transpose_b = attributes.GetBool("transpose_b");
  const Activation activation = attributes.Get(attribute::kActivation);
  const Shape& a_shape = inputs[0].spec.shape;
  const auto rows = static_cast<std::size_t>(outputs[0].spec.shape[0]);
  const auto columns = static_cast<std::size_t>(outputs[0].spec.shape[1]);
  const auto depth = static_cast<std::size_t>(a_shape[transpose_a ? 0 : 1]);
  const std::vector<double>& a = inputs[0].values;
  const std::vector<double>& b = inputs[1].values;
  const bool whole_bias = HasOperand(inputs, 2) && inputs[2].spec.shape.size() == 2;
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t n = 0; n < columns; ++n) {
      double sum = HasOperand(inputs, 2) ? inputs[2].values[whole_bias ? m * columns + n : n] : 0;
      for (std::size_t k = 0; k < depth; ++k) {
        sum += a[transpose_a ? k * rows + m : m * depth + k] * b[transpose_b ? n * depth + k : k * columns + n];
      }
      outputs[0].values[m * columns + n] = Activate(activation, sum);
    }
  }
}

void BatchMatmul(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const bool transpose_a = attributes.GetBool("transpose_a");
  const bool transpose_b = attributes.GetBool("transpose_b");
  const Shape& y_shape = outputs[0].spec.shape;
  const auto rows = static_cast<std::size_t>(y_shape[y_shape.size() - 2]);
  const auto columns = static_cast<std::size_t>(y_shape.back());
  const auto depth = static_cast<std::size_t>(inputs[0].spec.shape[y_shape.size() - (transpose_a ? 2 : 1)]);
  const std::size_t products = outputs[0].values.size() / (rows * columns);
  for (std::size_t p = 0; p < products; ++p) {
    const double* const a = inputs[0].values.data() + p * rows * depth;
    const double* const b = inputs[1].values.data() + p * depth * columns;
    for (std::size_t m = 0; m < rows; ++m) {
      for (std::size_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (std::size_t k = 0; k < depth; ++k) {
          sum += a[transpose_a ? k * rows + m : m * depth + k] * b[transpose_b ? n * depth + k : k * columns + n];
        }
        outputs[0].values[(p * rows + m) * columns + n] = sum;
      }
    }
  }
}

constexpr NamedFunction kTable[] = {{"matmul", Matmul}, {"batch_matmul", BatchMatmul}};

}  // namespace

FunctionTable MatmulFunctions() { return kTable; }

}  // namespace mpc::reference
