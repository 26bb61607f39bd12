// AMP-7: an operation that a level makes low is the same low kernel that a program of hand-made casts runs.
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

/// One operation as a network of one, two or three inputs.
class OneOperand : public nn::Cell {
 public:
  MPC_CELL(OneOperand)
  explicit OneOperand(Function function) : function_(std::move(function)) {}
  Tensor Construct(Tensor a) { return function_({a}); }

 private:
  Function function_;
};

class TwoOperands : public nn::Cell {
 public:
  MPC_CELL(TwoOperands)
  explicit TwoOperands(Function function) : function_(std::move(function)) {}
  Tensor Construct(Tensor a, Tensor b) { return function_({a, b}); }

 private:
  Function function_;
};

class ThreeOperands : public nn::Cell {
 public:
  MPC_CELL(ThreeOperands)
  explicit ThreeOperands(Function function) : function_(std::move(function)) {}
  Tensor Construct(Tensor a, Tensor b, Tensor c) { return function_({a, b, c}); }

 private:
  Function function_;
};

absl::StatusOr<Tensor> PredictAtLevel(const Function& function, const std::vector<Tensor>& x, ModelOptions options) {
  if (x.size() == 1) {
    OneOperand network(function);
    return Model(network, std::move(options)).Predict(x[0]);
  }
  if (x.size() == 2) {
    TwoOperands network(function);
    return Model(network, std::move(options)).Predict(x[0], x[1]);
  }
  ThreeOperands network(function);
  return Model(network, std::move(options)).Predict(x[0], x[1], x[2]);
}

struct Operation {
  std::string name;
  std::vector<Shape> shapes;
  Function function;
  bool positive = false;  ///< operands in [1/8, 9/8): logarithms, roots, divisors
};

/// The classes Allow, which is low at O1, O2 and O3, and the rest, which is low at O2 and O3.
std::vector<Operation> AllowOperations() {
  return {
      {"matmul", {{5, 7}, {7, 6}}, [](const auto& x) { return matmul(x[0], x[1]); }},
      {"dense", {{5, 7}, {7, 6}, {6}}, [](const auto& x) { return matmul(x[0], x[1], x[2]); }},
      {"batch_matmul", {{2, 5, 7}, {2, 7, 6}}, [](const auto& x) { return batch_matmul(x[0], x[1]); }},
      {"conv2d", {{2, 3, 6, 6}, {4, 3, 3, 3}}, [](const auto& x) { return conv2d(x[0], x[1]); }},
      {"conv2d_bias", {{2, 3, 6, 6}, {4, 3, 3, 3}, {4}}, [](const auto& x) { return conv2d(x[0], x[1], x[2]); }},
      {"conv_transpose2d", {{2, 3, 4, 4}, {3, 4, 3, 3}}, [](const auto& x) { return conv_transpose2d(x[0], x[1]); }},
      {"attention",
       {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 4}},
       [](const auto& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }},
      {"prelu", {{2, 3, 4}, {3}}, [](const auto& x) { return prelu(x[0], x[1]); }},
  };
}

std::vector<Operation> OtherOperations() {
  return {
      {"add", {{3, 5}, {3, 5}}, [](const auto& x) { return x[0] + x[1]; }},
      {"sub", {{3, 5}, {5}}, [](const auto& x) { return x[0] - x[1]; }},
      {"mul", {{3, 5}, {3, 5}}, [](const auto& x) { return x[0] * x[1]; }},
      {"div", {{3, 5}, {3, 5}}, [](const auto& x) { return x[0] / x[1]; }, true},
      {"add_scalar", {{3, 5}}, [](const auto& x) { return x[0] + 1e-8; }},
      {"mul_scalar", {{3, 5}}, [](const auto& x) { return x[0] * 0.1; }},
      {"relu", {{3, 5}}, [](const auto& x) { return relu(x[0]); }},
      {"leaky_relu", {{3, 5}}, [](const auto& x) { return leaky_relu(x[0]); }},
      {"sigmoid", {{3, 5}}, [](const auto& x) { return sigmoid(x[0]); }},
      {"tanh", {{3, 5}}, [](const auto& x) { return tanh(x[0]); }},
      {"gelu", {{3, 5}}, [](const auto& x) { return gelu(x[0]); }},
      {"silu", {{3, 5}}, [](const auto& x) { return silu(x[0]); }},
      {"hard_swish", {{3, 5}}, [](const auto& x) { return hard_swish(x[0]); }},
      {"erf", {{3, 5}}, [](const auto& x) { return erf(x[0]); }},
      {"exp", {{3, 5}}, [](const auto& x) { return exp(x[0]); }},
      {"log", {{3, 5}}, [](const auto& x) { return log(x[0]); }, true},
      {"log1p", {{3, 5}}, [](const auto& x) { return log1p(x[0]); }, true},
      {"sqrt", {{3, 5}}, [](const auto& x) { return sqrt(x[0]); }, true},
      {"pow", {{3, 5}}, [](const auto& x) { return pow(x[0], 1.5); }, true},
      {"square", {{3, 5}}, [](const auto& x) { return square(x[0]); }},
      {"abs", {{3, 5}}, [](const auto& x) { return abs(x[0]); }},
      {"floor", {{3, 5}}, [](const auto& x) { return floor(x[0] * 4.0); }},
      {"clamp", {{3, 5}}, [](const auto& x) { return clamp(x[0], -0.5, 0.5); }},
      {"maximum", {{3, 5}, {3, 5}}, [](const auto& x) { return maximum(x[0], x[1]); }},
      {"minimum", {{3, 5}, {3, 5}}, [](const auto& x) { return minimum(x[0], x[1]); }},
      {"where", {{3, 5}, {3, 5}}, [](const auto& x) { return where(greater(x[0], x[1]), x[0], x[1]); }},
      {"softmax", {{3, 5}}, [](const auto& x) { return softmax(x[0]); }},
      {"log_softmax", {{3, 5}}, [](const auto& x) { return log_softmax(x[0]); }},
      {"max_pool2d", {{2, 3, 6, 6}}, [](const auto& x) { return max_pool2d(x[0]); }},
      {"avg_pool2d", {{2, 3, 6, 6}}, [](const auto& x) { return avg_pool2d(x[0]); }},
      {"resize",
       {{2, 3, 3, 4}},
       [](const auto& x) {
         return interpolate(x[0], {.size = {5, 7}, .mode = "bilinear"});
       }},
      {"reshape",
       {{3, 5}},
       [](const auto& x) {
         return reshape(x[0], {5, 3});
       }},
      {"transpose",
       {{3, 5}},
       [](const auto& x) {
         return transpose(x[0], {1, 0});
       }},
      {"concat",
       {{3, 5}, {2, 5}},
       [](const auto& x) {
         return concat({x[0], x[1]}, 0);
       }},
      {"split",
       {{3, 5}},
       [](const auto& x) {
         return split(x[0], {2, 3}, 1)[1];
       }},
      {"slice",
       {{3, 5}},
       [](const auto& x) {
         return slice(x[0], {1, 1}, {2, 3});
       }},
      {"pad",
       {{3, 5}},
       [](const auto& x) {
         return pad(x[0], {1, 0}, {0, 2}, 0.25);
       }},
  };
}

class LowKernels : public ::testing::TestWithParam<DType> {};

void ExpectHandCastBits(const Operation& operation, const std::string& level, DType low) {
  std::vector<Tensor> operands;
  std::vector<Tensor> by_hand;
  for (const Shape& shape : operation.shapes) {
    Tensor x = Values(shape, static_cast<std::int64_t>(operands.size()) + 1);
    if (operation.positive) x = abs(x) + 0.125;
    operands.push_back(x);
    by_hand.push_back(x.To(low));
  }
  const Tensor expected = operation.function(by_hand);
  MPC_ASSERT_OK(expected.status());
  ASSERT_EQ(expected.dtype(), low) << operation.name;
  const absl::StatusOr<Tensor> actual =
      PredictAtLevel(operation.function, operands, {.amp_level = level, .amp_dtype = low});
  ASSERT_TRUE(actual.ok()) << operation.name << ": " << actual.status();
  EXPECT_EQ(actual->dtype(), DType::kF32);
  EXPECT_EQ(actual->ToFloats(), expected.ToFloats()) << operation.name << " at " << level;
  // The claim would be empty if the operands were low numbers already.
  EXPECT_NE(operands[0].ToFloats(), by_hand[0].ToFloats()) << operation.name;
}

TEST_P(LowKernels, AMP_7_AllowOperationsEqualThoseOnHandCastOperandsAtEveryLowLevel) {
  for (const char* level : {"O1", "O2", "O3"}) {
    for (const Operation& operation : AllowOperations()) ExpectHandCastBits(operation, level, GetParam());
  }
}

TEST_P(LowKernels, AMP_7_EveryOtherOperationEqualsThatOnHandCastOperandsAtO2AndO3) {
  for (const char* level : {"O2", "O3"}) {
    for (const Operation& operation : OtherOperations()) ExpectHandCastBits(operation, level, GetParam());
  }
}

// The state of a recurrent cell keeps its type, so it is no low operand.
TEST_P(LowKernels, AMP_7_RecurrentCellsEqualThoseOnHandCastGates) {
  const Tensor gates = Values({2, 12}, 1);
  const Tensor state = Values({2, 3}, 2);
  const auto hidden = [](const std::vector<Tensor>& x) { return lstm_cell(x[0], x[1]).first; };
  const Tensor expected = hidden({gates.To(GetParam()), state});
  const absl::StatusOr<Tensor> actual =
      PredictAtLevel(hidden, {gates, state}, {.amp_level = "O1", .amp_dtype = GetParam()});
  ASSERT_TRUE(actual.ok()) << actual.status();
  EXPECT_EQ(actual->ToFloats(), expected.ToFloats());
}

INSTANTIATE_TEST_SUITE_P(Types, LowKernels, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

}  // namespace
}  // namespace mpc::testing
