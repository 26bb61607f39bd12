// Element-wise operations of two operands with broadcasting, for any floating storage type: add, sub, mul, div,
// maximum, minimum. Their gradient operations are div_grad (dy, y, b), maximum_grad and minimum_grad (dy, a, b).
// Operands of the result's shape are read where they lie. Every broadcast operand (scalar, row such as a bias, column,
// others) is expanded block by block in the cache.
#include "kernels/scalar/binary.h"

#include "kernels/cpu/elementwise_loops.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {

void RegisterBinary(Registry& registry) {
  registry.Add("add", CreateBinary<scalar::AddOp>, {{0, 0}, {0, 1}});
  registry.Add("sub", CreateBinary<scalar::SubOp>, {{0, 0}, {0, 1}});
  registry.Add("mul", CreateBinary<scalar::MulOp>, {{0, 0}, {0, 1}});
  registry.Add("div", CreateBinary<scalar::DivOp>, {{0, 0}, {0, 1}});
  registry.Add("maximum", CreateBinary<scalar::MaximumOp>, {{0, 0}, {0, 1}});
  registry.Add("minimum", CreateBinary<scalar::MinimumOp>, {{0, 0}, {0, 1}});
  registry.Add("div_grad", CreateTernaryGrad<scalar::DivGradOp>, {{0, 0}, {0, 1}, {0, 2}});
  registry.Add("maximum_grad", CreateTernaryGrad<scalar::MaximumGradOp>, {{0, 0}, {1, 0}});
  registry.Add("minimum_grad", CreateTernaryGrad<scalar::MinimumGradOp>, {{0, 0}, {1, 0}});
}

}  // namespace mpc::cpu
