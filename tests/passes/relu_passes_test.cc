// Passes that move relu or change what its derivative reads keep every bit, the signs of zeros included.
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "compiler/dialect/dialect.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/target/targets.h"
#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"

namespace mpc {
namespace {

using reference::Tensor;

// The cotangent of y is w, of any values.
constexpr const char* kDropout = R"(
func.func private @forward(%x: tensor<64x8xT>, %w: tensor<512xT>, %seed: tensor<i64>, %step: tensor<i32>)
    -> (tensor<f32>, tensor<512xT>) {
  %r = mpc.relu %x : (tensor<64x8xT>) -> tensor<64x8xT>
  %v = mpc.reshape %r {shape = array<i64: 512>} : (tensor<64x8xT>) -> tensor<512xT>
  %y = mpc.dropout %v, %seed, %step {call_site = 2, p = P : f32}
      : (tensor<512xT>, tensor<i64>, tensor<i32>) -> tensor<512xT>
  %p = mpc.mul %y, %w : (tensor<512xT>, tensor<512xT>) -> tensor<512xf32>
  %loss = mpc.reduce_sum %p {axes = array<i64>} : (tensor<512xf32>) -> tensor<f32>
  return %loss, %y : tensor<f32>, tensor<512xT>
}
func.func @step(%x: tensor<64x8xT>, %w: tensor<512xT>, %seed: tensor<i64>, %step: tensor<i32>, %one: tensor<f32>)
    -> (tensor<512xT>, tensor<64x8xT>, tensor<512xT>) {
  %loss, %y, %dx, %dw = mpc.value_and_grad @forward(%x, %w, %seed, %step) seed(%one) {wrt = array<i64: 0, 1>}
      : (tensor<64x8xT>, tensor<512xT>, tensor<i64>, tensor<i32>, tensor<f32>)
      -> (tensor<f32>, tensor<512xT>, tensor<64x8xT>, tensor<512xT>)
  return %y, %dx, %dw : tensor<512xT>, tensor<64x8xT>, tensor<512xT>
}
)";

constexpr const char* kMean = R"(
func.func @step(%x: tensor<64x8xT>, %w: tensor<512xT>, %seed: tensor<i64>, %step: tensor<i32>, %one: tensor<f32>)
    -> (tensor<64xf32>, tensor<64x8xf32>, tensor<512xf16>) {
  %y = mpc.relu %x : (tensor<64x8xT>) -> tensor<64x8xT>
  %v = mpc.reshape %y {shape = array<i64: 512>} : (tensor<64x8xT>) -> tensor<512xT>
  %m = mpc.reduce_mean %y {axes = array<i64: 1>} : (tensor<64x8xT>) -> tensor<64xf32>
  %d = mpc.reshape %w {mpc.backward, shape = array<i64: 64, 8>} : (tensor<512xT>) -> tensor<64x8xT>
  %dx = mpc.relu_grad %d, %y {mpc.backward} : (tensor<64x8xT>, tensor<64x8xT>) -> tensor<64x8xf32>
  %dv = mpc.relu_grad %w, %v {mpc.backward} : (tensor<512xT>, tensor<512xT>) -> tensor<512xf16>
  return %m, %dx, %dv : tensor<64xf32>, tensor<64x8xf32>, tensor<512xf16>
}
)";

// relu of an image that batch normalisation makes of finite values.
constexpr const char* kNorm = R"(
func.func private @forward(%x: tensor<64x8xT>, %w: tensor<512xT>) -> (tensor<f32>, tensor<64x8xT>) {
  %gamma = mpc.constant {value = dense<[1.0, -0.5, 2.0, 0.25, 1.0, 1.0, -1.0, 3.0]> : tensor<8xf32>} : () -> tensor<8xf32>
  %beta = mpc.constant {value = dense<[0.0, 0.125, -0.5, 1.0, 0.0, -2.0, 0.5, 0.0]> : tensor<8xf32>} : () -> tensor<8xf32>
  %zero = mpc.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %number = mpc.equal %x, %x : (tensor<64x8xT>, tensor<64x8xT>) -> tensor<64x8xi1>
  %c = mpc.clamp %x {minimum = -4.0 : f32, maximum = 4.0 : f32} : (tensor<64x8xT>) -> tensor<64x8xT>
  %f = mpc.where %number, %c, %zero : (tensor<64x8xi1>, tensor<64x8xT>, tensor<f32>) -> tensor<64x8xT>
  %n, %mean, %variance, %inv_std = mpc.batch_norm_train %f, %gamma, %beta
      : (tensor<64x8xT>, tensor<8xf32>, tensor<8xf32>) -> (tensor<64x8xT>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %r = mpc.relu %n : (tensor<64x8xT>) -> tensor<64x8xT>
  %v = mpc.reshape %r {shape = array<i64: 512>} : (tensor<64x8xT>) -> tensor<512xT>
  %p = mpc.mul %v, %w : (tensor<512xT>, tensor<512xT>) -> tensor<512xf32>
  %loss = mpc.reduce_sum %p {axes = array<i64>} : (tensor<512xf32>) -> tensor<f32>
  return %loss, %r : tensor<f32>, tensor<64x8xT>
}
func.func @step(%x: tensor<64x8xT>, %w: tensor<512xT>, %seed: tensor<i64>, %step: tensor<i32>, %one: tensor<f32>)
    -> (tensor<64x8xT>, tensor<64x8xT>, tensor<512xT>) {
  %loss, %y, %dx, %dw = mpc.value_and_grad @forward(%x, %w) seed(%one) {wrt = array<i64: 0, 1>}
      : (tensor<64x8xT>, tensor<512xT>, tensor<f32>) -> (tensor<f32>, tensor<64x8xT>, tensor<64x8xT>, tensor<512xT>)
  return %y, %dx, %dw : tensor<64x8xT>, tensor<64x8xT>, tensor<512xT>
}
)";

// Windows overlap: an element is the largest of several.
constexpr const char* kPooling = R"(
func.func private @forward(%x: tensor<64x8xT>, %w: tensor<512xT>) -> (tensor<f32>, tensor<2x4x7x7xT>) {
  %i = mpc.reshape %x {shape = array<i64: 2, 4, 8, 8>} : (tensor<64x8xT>) -> tensor<2x4x8x8xT>
  %r = mpc.relu %i : (tensor<2x4x8x8xT>) -> tensor<2x4x8x8xT>
  %y, %p = mpc.max_pool2d %r {kernel_size = array<i64: 2, 2>, strides = array<i64: 1, 1>}
      : (tensor<2x4x8x8xT>) -> (tensor<2x4x7x7xT>, tensor<2x4x7x7xi8>)
  %s = mpc.slice %w {starts = array<i64: 0>, sizes = array<i64: 392>} : (tensor<512xT>) -> tensor<392xT>
  %v = mpc.reshape %s {shape = array<i64: 2, 4, 7, 7>} : (tensor<392xT>) -> tensor<2x4x7x7xT>
  %q = mpc.mul %y, %v : (tensor<2x4x7x7xT>, tensor<2x4x7x7xT>) -> tensor<2x4x7x7xf32>
  %loss = mpc.reduce_sum %q {axes = array<i64>} : (tensor<2x4x7x7xf32>) -> tensor<f32>
  return %loss, %y : tensor<f32>, tensor<2x4x7x7xT>
}
func.func @step(%x: tensor<64x8xT>, %w: tensor<512xT>, %seed: tensor<i64>, %step: tensor<i32>, %one: tensor<f32>)
    -> (tensor<2x4x7x7xT>, tensor<64x8xT>) {
  %loss, %y, %dx = mpc.value_and_grad @forward(%x, %w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<64x8xT>, tensor<512xT>, tensor<f32>) -> (tensor<f32>, tensor<2x4x7x7xT>, tensor<64x8xT>)
  return %y, %dx : tensor<2x4x7x7xT>, tensor<64x8xT>
}
)";

class ReluPasses : public ::testing::TestWithParam<DType> {
 protected:
  ReluPasses() {
    context_.loadDialect<MpcDialect, mlir::func::FuncDialect>();
    compiler::registerTargets(context_);
  }

  std::string Step(const char* text, double p = 0.5) const {
    return absl::StrReplaceAll(text, {{"xT>", absl::StrCat("x", std::string(DTypeName(GetParam())), ">")},
                                      {"p = P", absl::StrFormat("p = %.2f", p)}});
  }

  /// Ordinary values, the smallest and the largest of the type, infinities, NaN, zeros of either sign.
  Tensor Values(Shape shape, unsigned seed) const {
    Tensor tensor{{GetParam(), std::move(shape)}, {}};
    const double infinity = std::numeric_limits<double>::infinity();
    const bool half = GetParam() == DType::kF16;
    const double smallest = half ? 0x1p-24 : GetParam() == DType::kBF16 ? 0x1p-133 : 0x1p-149;
    const double largest = half ? 65504 : 0x1.fep127;
    const double special[] = {0.0, -0.0, infinity, -infinity, std::nan(""), smallest, -smallest, largest, -largest};
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> pick(0, 26);
    std::normal_distribution<double> ordinary;
    for (std::int64_t i = 0; i < tensor.spec.num_elements(); ++i) {
      const int drawn = pick(random);
      tensor.values.push_back(drawn < 9 ? special[drawn] : reference::RoundTo(GetParam(), ordinary(random)));
    }
    return tensor;
  }

  using AddPasses = void (*)(mlir::PassManager&);

  /// The results of the step behind the passes, whose IR is left in printed_.
  std::vector<Tensor> Run(const std::string& text, AddPasses add) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context_));
    EXPECT_TRUE(module) << text;
    mlir::PassManager manager(&context_);
    add(manager);
    EXPECT_TRUE(mlir::succeeded(manager.run(*module)));
    printed_.clear();
    llvm::raw_string_ostream(printed_) << *module;
    const auto step = module->lookupSymbol<mlir::func::FuncOp>("step");
    auto results = interpret(step, {Values({64, 8}, 1),
                                    Values({512}, 2),
                                    {{DType::kI64, {}}, {12345}},
                                    {{DType::kI32, {}}, {7}},
                                    {{DType::kF32, {}}, {1}}});
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? *results : std::vector<Tensor>();
  }

  static void ExpectSameBits(const std::vector<Tensor>& expected, const std::vector<Tensor>& actual) {
    ASSERT_EQ(expected.size(), actual.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(expected[i].spec, actual[i].spec);
      for (std::size_t k = 0; k < expected[i].values.size(); ++k) {
        const double a = expected[i].values[k], b = actual[i].values[k];
        ASSERT_TRUE(std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b))
            << "result " << i << " element " << k << ": " << a << " and " << b;
      }
    }
  }

  mlir::MLIRContext context_;
  std::string printed_;
};

TEST_P(ReluPasses, DropoutOfReluIsReluOfDropout) {
  for (double p : {0.0, 0.1, 0.5, 0.9}) {
    SCOPED_TRACE(p);
    const std::string step = Step(kDropout, p);
    const std::vector<Tensor> before =
        Run(step, [](mlir::PassManager& manager) { manager.addPass(createAutodiffPass()); });
    EXPECT_LT(printed_.find("mpc.relu "), printed_.find("mpc.dropout"));
    const std::vector<Tensor> after = Run(step, [](mlir::PassManager& manager) {
      manager.addNestedPass<mlir::func::FuncOp>(createSinkReluPass());
      manager.addPass(createAutodiffPass());
    });
    EXPECT_GT(printed_.find("mpc.relu "), printed_.find("mpc.dropout"));
    ExpectSameBits(before, after);
  }
}

TEST_P(ReluPasses, PoolingOfReluIsReluOfPooling) {
  const std::string step = Step(kPooling);
  const std::vector<Tensor> before =
      Run(step, [](mlir::PassManager& manager) { manager.addPass(createAutodiffPass()); });
  EXPECT_LT(printed_.find("mpc.relu "), printed_.find("mpc.max_pool2d "));
  const std::vector<Tensor> after = Run(step, [](mlir::PassManager& manager) {
    manager.addNestedPass<mlir::func::FuncOp>(createSinkReluPass());
    manager.addPass(createAutodiffPass());
  });
  EXPECT_GT(printed_.find("mpc.relu "), printed_.find("mpc.max_pool2d "));
  ExpectSameBits(before, after);
}

TEST_P(ReluPasses, AMaskSaysWhatTheResultDoes) {
  const std::string step = Step(kMean);
  const std::vector<Tensor> before = Run(step, [](mlir::PassManager&) {});
  const std::vector<Tensor> after =
      Run(step, [](mlir::PassManager& manager) { manager.addNestedPass<mlir::func::FuncOp>(createReluMaskPass()); });
  EXPECT_EQ(printed_.find("mpc.relu_grad"), std::string::npos) << printed_;
  ExpectSameBits(before, after);
}

TEST_P(ReluPasses, AnImageThatIsNormalisedAgainSaysWhatReluDoes) {
  const std::string step = Step(kNorm);
  const std::vector<Tensor> before =
      Run(step, [](mlir::PassManager& manager) { manager.addPass(createAutodiffPass()); });
  EXPECT_EQ(printed_.find("mpc.batch_norm_apply"), std::string::npos) << printed_;
  const std::vector<Tensor> after = Run(step, [](mlir::PassManager& manager) {
    manager.addPass(createAutodiffPass());
    manager.addNestedPass<mlir::func::FuncOp>(createRenormalizePass());
  });
  EXPECT_NE(printed_.find("mpc.batch_norm_apply"), std::string::npos) << printed_;
  ExpectSameBits(before, after);
}

INSTANTIATE_TEST_SUITE_P(Types, ReluPasses, ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

}  // namespace
}  // namespace mpc
