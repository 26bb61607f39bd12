// What the precision assignment decides, read from the analysis alone.
#include "passes/precision/precision_assignment.h"

#include "compiler/dialect/matrix_work.h"
#include "compiler/dialect/operation_attributes.h"
#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"

namespace mpc {
namespace {

using llvm::StringRef;

// A module, its assignment, and the operations by name.
class PrecisionAssignmentTest : public ::testing::Test {
 protected:
  PrecisionAssignmentTest() { context_.loadDialect<MpcDialect, mlir::func::FuncDialect>(); }

  PrecisionAssignment Assign(AmpLevel level, StringRef body, bool keep_norms = true) {
    std::string text = "#n = #mpc.scope<\"net\", network>\n" + body.str();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context_));
    EXPECT_TRUE(module_);
    return PrecisionAssignment(*module_, {level, mlir::Float16Type::get(&context_), keep_norms, {}, {}});
  }

  // The only operation of this kind.
  template <typename Op>
  Op Find() {
    Op found;
    module_->walk([&](Op op) { found = op; });
    return found;
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

constexpr const char* kNormToBoth = R"(
func.func @f(%x: tensor<2x4xf32>, %s: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %y = mpc.batch_norm_infer %x, %s, %s, %s, %s {mpc.scope = #n}
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %r = mpc.relu %y {mpc.scope = #n} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %r, %y : tensor<2x4xf32>, tensor<2x4xf32>
})";

TEST_F(PrecisionAssignmentTest, NormWithOneF32UserWritesF32) {
  PrecisionAssignment assignment = Assign(AmpLevel::O2, kNormToBoth);
  const OpPrecision* norm = assignment.lookup(Find<BatchNormInferOp>());
  ASSERT_TRUE(norm);
  EXPECT_TRUE(norm->results[0].isF32());
  EXPECT_FALSE(norm->operands[0]) << "x is read as it is stored";
  EXPECT_TRUE(norm->operands[1].isF32());
  EXPECT_TRUE(norm->compute.isF32());
  EXPECT_EQ(norm->rule, PrecisionRule::NormKeptF32);
  EXPECT_FALSE(norm->isFolded);
  EXPECT_FALSE(norm->isUsers);
}

TEST_F(PrecisionAssignmentTest, NormIsLowWhereNormsAreNotKept) {
  PrecisionAssignment assignment = Assign(AmpLevel::O3, kNormToBoth, /*keep_norms=*/false);
  const OpPrecision* norm = assignment.lookup(Find<BatchNormInferOp>());
  ASSERT_TRUE(norm);
  EXPECT_TRUE(norm->operands[0].isF16());
  EXPECT_TRUE(norm->results[0].isF16());
  EXPECT_TRUE(norm->operands[4].isF32()) << "statistics stay f32";
}

TEST_F(PrecisionAssignmentTest, ChainOfNormsIsFoldedOnce) {
  PrecisionAssignment assignment = Assign(AmpLevel::O2, R"(
func.func @f(%x: tensor<2x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  %a = mpc.batch_norm_infer %x, %s, %s, %s, %s {mpc.scope = #n}
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %b, %m, %v, %i = mpc.batch_norm_train %a, %s, %s {mpc.scope = #n}
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %r = mpc.relu %b {mpc.scope = #n} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
})");
  EXPECT_TRUE(assignment.lookup(Find<BatchNormInferOp>())->results[0].isF16());
  EXPECT_EQ(assignment.lookup(Find<BatchNormTrainOp>())->rule, PrecisionRule::NormKeptF32);
  EXPECT_TRUE(assignment.lookup(Find<BatchNormTrainOp>())->isFolded);
}

TEST_F(PrecisionAssignmentTest, ExemptOperationsAreNeverDecided) {
  PrecisionAssignment assignment = Assign(AmpLevel::O3, R"(
func.func @f() -> tensor<4xf32> {
  %c = mpc.constant {value = dense<1.0> : tensor<4xf32>, mpc.scope = #n} : () -> tensor<4xf32>
  return %c : tensor<4xf32>
})");
  EXPECT_FALSE(assignment.lookup(Find<ConstantOp>()));
}

TEST_F(PrecisionAssignmentTest, OperationsOutsideEveryNetworkKeepTheirTypes) {
  PrecisionAssignment assignment = Assign(AmpLevel::O3, R"(
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = mpc.exp %x {mpc.scope = #mpc.scope<"loss">} : (tensor<4xf32>) -> tensor<4xf32>
  %r = mpc.relu %e {mpc.scope = #n} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
})");
  EXPECT_FALSE(assignment.lookup(Find<ExpOp>()));
  EXPECT_TRUE(assignment.lookup(Find<ReluOp>())->results[0].isF16());
}

constexpr const char* kResidual = R"(
func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<4x4xf32> {
  %h = mpc.matmul %x, %w {mpc.scope = #n} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = mpc.add %h, %b {mpc.scope = #n} : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %r = mpc.relu %a {mpc.scope = #n} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = mpc.softmax %r {mpc.scope = #n} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = mpc.maximum %s, %r {mpc.scope = #n} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = mpc.matmul %m, %w {mpc.scope = #n} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
})";

// Elements that a pass would cast: each value once a type.
std::int64_t CastElements(mlir::ModuleOp module, const PrecisionAssignment& assignment) {
  const auto type_of = [&](mlir::Value value) {
    const OpPrecision* producer = value.getDefiningOp() ? assignment.lookup(value.getDefiningOp()) : nullptr;
    return producer ? producer->results[mlir::cast<mlir::OpResult>(value).getResultNumber()] : elementOf(value);
  };
  llvm::DenseSet<std::pair<mlir::Value, mlir::Type>> casts;
  std::int64_t elements = 0;
  module.walk([&](mlir::Operation* op) {
    const OpPrecision* precision = assignment.lookup(op);
    for (mlir::OpOperand& use : op->getOpOperands()) {
      mlir::Type wanted = precision ? precision->operands[use.getOperandNumber()] : elementOf(use.get());
      if (wanted && wanted != type_of(use.get()) && casts.insert({use.get(), wanted}).second) {
        elements += mlir::cast<mlir::RankedTensorType>(use.get().getType()).getNumElements();
      }
    }
  });
  return elements;
}

TEST_F(PrecisionAssignmentTest, CastsCostWhatTheCutSaysAndNoOtherAssignmentCostsLess) {
  PrecisionAssignment assignment = Assign(AmpLevel::O1, kResidual);
  EXPECT_EQ(CastElements(*module_, assignment), assignment.getCutCost());
  // x and w to low, h to f32, the maximum to low, y to f32: a low sum would also cast b, and softmax's result.
  EXPECT_EQ(assignment.getCutCost(), 5 * 16);
  EXPECT_EQ(assignment.lookup(Find<AddOp>())->rule, PrecisionRule::Cut);
  EXPECT_TRUE(assignment.lookup(Find<AddOp>())->results[0].isF32());
  EXPECT_EQ(assignment.lookup(Find<MatmulOp>())->rule, PrecisionRule::Class);
  EXPECT_EQ(assignment.lookup(Find<MatmulOp>())->detail, "allow");
  EXPECT_EQ(assignment.lookup(Find<SoftmaxOp>())->rule, PrecisionRule::Class);
  EXPECT_EQ(assignment.lookup(Find<SoftmaxOp>())->detail, "deny");
  // What is stored of the four open slots (add, relu, maximum and nothing else) is tried in every combination.
  for (unsigned low = 0; low < 8; ++low) {
    mlir::Builder builder(&context_);
    const auto entry = [&](const char* name, unsigned bit) {
      return builder.getNamedAttr(name, builder.getStringAttr((low >> bit & 1U) != 0 ? "f16" : "f32"));
    };
    dialectOf(*module_).getAssignmentAttrHelper().setAttr(
        *module_,
        builder.getDictionaryAttr({entry("net#add.0", 0), entry("net#relu.0", 1), entry("net#maximum.0", 2)}));
    PrecisionAssignment given(*module_, {AmpLevel::O1, mlir::Float16Type::get(&context_), true, {}, {}});
    EXPECT_EQ(given.lookup(Find<AddOp>())->rule, PrecisionRule::StoredAssignment);
    EXPECT_EQ(CastElements(*module_, given), given.getCutCost());
    EXPECT_GE(given.getCutCost(), assignment.getCutCost()) << low;
  }
}

TEST_F(PrecisionAssignmentTest, SolvedSlotsAreNamedByCellOperationAndPlace) {
  PrecisionAssignment assignment = Assign(AmpLevel::O1, kResidual);
  const StoredAssignment expected = {{"net#add.0", "f32"},     {"net#matmul.0", "f16"}, {"net#matmul.1", "f16"},
                                     {"net#maximum.0", "f32"}, {"net#relu.0", "f32"},   {"net#softmax.0", "f32"}};
  EXPECT_EQ(assignment.getStored(), expected);
  EXPECT_TRUE(Assign(AmpLevel::O2, kResidual).getStored().empty());
}

TEST(CostModel, CountsTheWorkOfAConvolutionAndWhatLowSaves) {
  mlir::MLIRContext context;
  context.loadDialect<MpcDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
func.func @f(%x: tensor<2x8x10x10xf32>, %w: tensor<16x4x3x3xf32>) -> tensor<2x16x8x8xf32> {
  %c = mpc.conv2d %x, %w {groups = 2 : i64} : (tensor<2x8x10x10xf32>, tensor<16x4x3x3xf32>) -> tensor<2x16x8x8xf32>
  return %c : tensor<2x16x8x8xf32>
})",
                                                        mlir::ParserConfig(&context));
  ASSERT_TRUE(module);
  Conv2dOp conv;
  module->walk([&](Conv2dOp op) { conv = op; });
  EXPECT_EQ(matrixFlops(conv), 2.0 * (2 * 16 * 8 * 8) * (4 * 3 * 3));
  CostModel costs = {.bytesPerSecond = 1e12, .lowFlops = 4e9, .f32Flops = 1e9, .secondsPerOperation = 1e-6};
  EXPECT_NEAR(costs.secondsSavedByLow(conv), matrixFlops(conv) * 0.75e-9, 1e-12);
  costs.lowFlops = 0.5e9;
  EXPECT_LT(costs.secondsSavedByLow(conv), 0);
  costs.bytesPerSecond = 1e3;
  EXPECT_NEAR(costs.castSeconds(conv.getY()), 1e-6 + 2048 * 6e-3, 1e-9);
  EXPECT_NEAR(costs.lowCopySeconds(conv.getWeight()), 576 * 2e-3, 1e-9);
}

TEST(AmpLevel, UnknownWordsAreErrorsThatListTheLevels) {
  for (StringRef text : {"02", "o4", ""}) {
    llvm::Expected<AmpLevel> level = parseAmpLevel(text);
    ASSERT_FALSE(level) << text.str();
    EXPECT_NE(llvm::toString(level.takeError()).find("O0, O1, O2, O3 and auto"), std::string::npos);
  }
}

}  // namespace
}  // namespace mpc
