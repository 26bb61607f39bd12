// Element-wise operations, their gradients, casts, comparison, selection and dropout.
#include "kernels/reference/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"
#include "kernels/scalar/philox.h"

namespace mpc::reference {
namespace {

// NaN passes: it is not below zero.
double Relu(double x) { return x <= 0 ? 0 : x; }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Tanh(double x) { return std::tanh(x); }
double Exp(double x) { return std::exp(x); }
double Log(double x) { return std::log(x); }
double Sqrt(double x) { return std::sqrt(x); }
double Neg(double x) { return -x; }
double Identity(double x) { return x; }

double ReluGrad(double dy, double y) { return y > 0 ? dy : 0; }
double SigmoidGrad(double dy, double y) { return dy * y * (1 - y); }
double TanhGrad(double dy, double y) { return dy * (1 - y * y); }
double SqrtGrad(double dy, double y) { return dy / (2 * y); }

double Add(double a, double b) { return a + b; }
double Sub(double a, double b) { return a - b; }
double Mul(double a, double b) { return a * b; }
double Div(double a, double b) { return a / b; }
double Equal(double a, double b) { return a == b ? 1 : 0; }
double Maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return std::max(a, b);
}
double Minimum(double a, double b) { return -Maximum(-a, -b); }
double Greater(double a, double b) { return a > b ? 1 : 0; }
double Less(double a, double b) { return a < b ? 1 : 0; }
double NotEqual(double a, double b) { return a != b ? 1 : 0; }
double GreaterEqual(double a, double b) { return a >= b ? 1 : 0; }
double LessEqual(double a, double b) { return a <= b ? 1 : 0; }
double LogicalAnd(double a, double b) { return a != 0 && b != 0 ? 1 : 0; }
double LogicalOr(double a, double b) { return a != 0 || b != 0 ? 1 : 0; }
double LogicalNot(double a) { return a == 0 ? 1 : 0; }

// The constant is f32 at every level.
template <double (*formula)(double, double)>
void WithScalar(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const double value = FloatAttribute(attributes, "value");
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = formula(inputs[0].values[i], value);
  }
}

void DivGrad(const Attributes&, Inputs inputs, Outputs outputs) {
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<double>& y = inputs[1].values;
  const std::vector<std::size_t> b = BroadcastIndices(inputs[2].spec.shape, outputs[0].spec.shape);
  for (std::size_t i = 0; i < dy.size(); ++i) outputs[0].values[i] = -dy[i] * y[i] / inputs[2].values[b[i]];
}

// The operand that `wins` receives dy; equal ones share it.
template <bool (*wins)(double, double)>
void ExtremumGrad(const Attributes&, Inputs inputs, Outputs outputs) {
  const std::vector<double>& dy = inputs[0].values;
  const std::vector<std::size_t> a_index = BroadcastIndices(inputs[1].spec.shape, inputs[0].spec.shape);
  const std::vector<std::size_t> b_index = BroadcastIndices(inputs[2].spec.shape, inputs[0].spec.shape);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const double a = inputs[1].values[a_index[i]];
    const double b = inputs[2].values[b_index[i]];
    const double share = a == b ? 0.5 : 1;
    outputs[0].values[i] = wins(a, b) ? share * dy[i] : 0;
    outputs[1].values[i] = wins(b, a) ? share * dy[i] : 0;
  }
}
bool AtLeast(double a, double b) { return a >= b; }
bool AtMost(double a, double b) { return a <= b; }

void SumN(const Attributes&, Inputs inputs, Outputs outputs) {
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    double sum = 0;
    for (const Tensor& input : inputs) sum += input.values[i];
    outputs[0].values[i] = sum;
  }
}

void Select(const Attributes&, Inputs inputs, Outputs outputs) {
  const std::vector<double>& condition = inputs[0].values;
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    const bool holds = condition[condition.size() == 1 ? 0 : i] != 0;
    outputs[0].values[i] = inputs[holds ? 1 : 2].values[i];
  }
}

void Where(const Attributes&, Inputs inputs, Outputs outputs) {
  const Shape& shape = outputs[0].spec.shape;
  const std::vector<std::size_t> condition = BroadcastIndices(inputs[0].spec.shape, shape);
  const std::vector<std::size_t> a = BroadcastIndices(inputs[1].spec.shape, shape);
  const std::vector<std::size_t> b = BroadcastIndices(inputs[2].spec.shape, shape);
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    const bool holds = inputs[0].values[condition[i]] != 0;
    outputs[0].values[i] = holds ? inputs[1].values[a[i]] : inputs[2].values[b[i]];
  }
}

void Iota(const Attributes& attributes, Inputs, Outputs outputs) {
  const Shape& shape = outputs[0].spec.shape;
  const std::size_t axis = NormalizeAxis(attributes.Get(attribute::kLastAxis), shape.size());
  const auto start = static_cast<double>(attributes.GetInt("start", 0));
  const auto step = static_cast<double>(attributes.GetInt("step", 1));
  const std::int64_t stride = RowMajorStrides(shape)[axis];
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = start + step * static_cast<double>(static_cast<std::int64_t>(i) / stride % shape[axis]);
  }
}

void Dropout(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const auto seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(Scalar(inputs[1])));
  const auto step = static_cast<std::uint32_t>(static_cast<std::int64_t>(Scalar(inputs[2])));
  const auto call_site = static_cast<std::uint32_t>(attributes.GetInt("call_site"));
  const auto p = static_cast<float>(attributes.GetDouble("p"));
  const double scale = static_cast<double>(DropoutScale(p));
  for (std::size_t i = 0; i < outputs[0].values.size(); ++i) {
    outputs[0].values[i] = DropoutKeeps(seed, step, call_site, i, p) ? inputs[0].values[i] * scale : 0;
  }
}

constexpr NamedFunction kTable[] = {
    {"relu", Unary<Relu>},
    {"sigmoid", Unary<Sigmoid>},
    {"tanh", Unary<Tanh>},
    {"exp", Unary<Exp>},
    {"log", Unary<Log>},
    {"sqrt", Unary<Sqrt>},
    {"neg", Unary<Neg>},
    {"stop_gradient", Unary<Identity>},
    {"cast", Unary<Identity>},  // the rounding to the result's type is the operation
    {"relu_grad", Binary<ReluGrad>},
    {"sigmoid_grad", Binary<SigmoidGrad>},
    {"tanh_grad", Binary<TanhGrad>},
    {"sqrt_grad", Binary<SqrtGrad>},
    {"add", Binary<Add>},
    {"sub", Binary<Sub>},
    {"mul", Binary<Mul>},
    {"div", Binary<Div>},
    {"maximum", Binary<Maximum>},
    {"minimum", Binary<Minimum>},
    {"equal", Binary<Equal>},
    {"greater", Binary<Greater>},
    {"less", Binary<Less>},
    {"not_equal", Binary<NotEqual>},
    {"greater_equal", Binary<GreaterEqual>},
    {"less_equal", Binary<LessEqual>},
    {"logical_and", Binary<LogicalAnd>},
    {"logical_or", Binary<LogicalOr>},
    {"logical_not", Unary<LogicalNot>},
    {"add_scalar", WithScalar<Add>},
    {"mul_scalar", WithScalar<Mul>},
    {"div_grad", DivGrad},
    {"maximum_grad", ExtremumGrad<AtLeast>},
    {"minimum_grad", ExtremumGrad<AtMost>},
    {"sum_n", SumN},
    {"select", Select},
    {"where", Where},
    {"iota", Iota},
    {"dropout", Dropout},
};

}  // namespace

double Activate(Activation activation, double value) {
  switch (activation) {
    case Activation::kNone:
      return value;
    case Activation::kRelu:
      return Relu(value);
    case Activation::kSigmoid:
      return Sigmoid(value);
    case Activation::kTanh:
      return Tanh(value);
    case Activation::kGelu:
      return Gelu(value);
    case Activation::kGeluTanh:
      return GeluTanh(value);
  }
  return value;
}

FunctionTable ElementwiseFunctions() { return kTable; }

}  // namespace mpc::reference
