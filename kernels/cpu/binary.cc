// Element-wise operations of two operands with broadcasting, for any floating storage type: add, sub, mul, div,
// maximum, minimum, and the gradient operations div_grad (dy, y, b), maximum_grad and minimum_grad (dy, a, b). Operands
// of the result's shape are read where they lie; scalars, rows (biases), columns and every other stretching are
// expanded block by block in the cache.
#include "kernels/cpu/elementwise_loops.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

struct Add {
  static float Apply(float a, float b) { return a + b; }
};
struct Sub {
  static float Apply(float a, float b) { return a - b; }
};
struct Mul {
  static float Apply(float a, float b) { return a * b; }
};
struct Div {
  static float Apply(float a, float b) { return a / b; }
};
// NaN if either is: a NaN in a makes `a > b` false and `b == b` true, hence the order of the tests.
struct Maximum {
  static float Apply(float a, float b) { return a > b || a != a ? a : b; }
};

// As Maximum.
struct Minimum {
  static float Apply(float a, float b) { return a < b || a != a ? a : b; }
};

struct DivGrad {
  static float First(float dy, float y, float b) { return -dy * y / b; }
  static float Second(float, float, float) { return 0.0f; }
};

struct MaximumGrad {
  static float First(float dy, float a, float b) { return a > b ? dy : (a == b ? 0.5f * dy : 0.0f); }
  static float Second(float dy, float a, float b) { return First(dy, b, a); }
};

struct MinimumGrad {
  static float First(float dy, float a, float b) { return a < b ? dy : (a == b ? 0.5f * dy : 0.0f); }
  static float Second(float dy, float a, float b) { return First(dy, b, a); }
};

}  // namespace

void RegisterBinary(Registry& registry) {
  registry.Add("add", CreateBinary<Add>, {{0, 0}, {0, 1}});
  registry.Add("sub", CreateBinary<Sub>, {{0, 0}, {0, 1}});
  registry.Add("mul", CreateBinary<Mul>, {{0, 0}, {0, 1}});
  registry.Add("div", CreateBinary<Div>, {{0, 0}, {0, 1}});
  registry.Add("maximum", CreateBinary<Maximum>, {{0, 0}, {0, 1}});
  registry.Add("minimum", CreateBinary<Minimum>, {{0, 0}, {0, 1}});
  registry.Add("div_grad", CreateTernaryGrad<DivGrad>, {{0, 0}, {0, 1}, {0, 2}});
  registry.Add("maximum_grad", CreateTernaryGrad<MaximumGrad>, {{0, 0}, {1, 0}});
  registry.Add("minimum_grad", CreateTernaryGrad<MinimumGrad>, {{0, 0}, {1, 0}});
}

}  // namespace mpc::cpu
