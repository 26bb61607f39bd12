// What the precision assignment decides, read from the analysis alone.
#include "passes/amp/precision_assignment.h"

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
    std::string text = "#n = #mpc.scope<path = \"net\", network = true>\n" + body.str();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context_));
    EXPECT_TRUE(module_);
    return PrecisionAssignment(*module_, {level, mlir::Float16Type::get(&context_), keep_norms});
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
  EXPECT_TRUE(norm->Results[0].isF32());
  EXPECT_FALSE(norm->Operands[0]) << "x is read as it is stored";
  EXPECT_TRUE(norm->Operands[1].isF32());
  EXPECT_TRUE(norm->Compute.isF32());
  EXPECT_EQ(norm->Reason, "norm kept f32");
}

TEST_F(PrecisionAssignmentTest, NormIsLowWhereNormsAreNotKept) {
  PrecisionAssignment assignment = Assign(AmpLevel::O3, kNormToBoth, /*keep_norms=*/false);
  const OpPrecision* norm = assignment.lookup(Find<BatchNormInferOp>());
  ASSERT_TRUE(norm);
  EXPECT_TRUE(norm->Operands[0].isF16());
  EXPECT_TRUE(norm->Results[0].isF16());
  EXPECT_TRUE(norm->Operands[4].isF32()) << "statistics stay f32";
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
  EXPECT_TRUE(assignment.lookup(Find<BatchNormInferOp>())->Results[0].isF16());
  EXPECT_EQ(assignment.lookup(Find<BatchNormTrainOp>())->Reason, "norm kept f32 (folded)");
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
  %e = mpc.exp %x {mpc.scope = #mpc.scope<path = "loss">} : (tensor<4xf32>) -> tensor<4xf32>
  %r = mpc.relu %e {mpc.scope = #n} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
})");
  EXPECT_FALSE(assignment.lookup(Find<ExpOp>()));
  EXPECT_TRUE(assignment.lookup(Find<ReluOp>())->Results[0].isF16());
}

TEST(AmpLevel, UnknownWordsAreErrorsThatListTheLevels) {
  for (StringRef text : {"02", "o4", "", "O1", "auto"}) {
    llvm::Expected<AmpLevel> level = parseAmpLevel(text);
    ASSERT_FALSE(level) << text.str();
    EXPECT_NE(llvm::toString(level.takeError()).find("O0, O2"), std::string::npos);
  }
}

}  // namespace
}  // namespace mpc
