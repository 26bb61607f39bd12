// Equal computations become one, with what is known of all of them; dead ones go.
#include "passes/computations.h"

#include <gtest/gtest.h>

#include <string>

#include "compiler/dialect/operation_attributes.h"
#include "mlir/Parser/Parser.h"

namespace mpc {
namespace {

class Computations : public ::testing::Test {
 protected:
  Computations() { context_.loadDialect<MpcDialect, mlir::func::FuncDialect>(); }

  mlir::Block& Parse(const std::string& body) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) {\n" + body + "return }", mlir::ParserConfig(&context_));
    EXPECT_TRUE(module_);
    return (*module_->getOps<mlir::func::FuncOp>().begin()).getBody().front();
  }

  template <typename Op>
  static std::vector<Op> All(mlir::Block& block) {
    const auto found = block.getOps<Op>();
    return {found.begin(), found.end()};
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(Computations, OfEqualOnesStayTheFirstWithTheReasonsAndMarksOfAll) {
  mlir::Block& body = Parse(R"(
    %0 = mpc.relu %x {mpc.precision = #mpc.precision<f32, cut>, mpc.scope = #mpc.scope<"a">}
        : (tensor<4xf32>) -> tensor<4xf32>
    %1 = mpc.relu %x {mpc.precision = #mpc.precision<f32, level "O2", user, folded>, mpc.scope = #mpc.scope<"b">}
        : (tensor<4xf32>) -> tensor<4xf32>
    %2 = mpc.relu %x {mpc.precision = #mpc.precision<f32, cut>} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = mpc.add %1, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  )");
  EXPECT_TRUE(mergeEqualComputations(body));
  ASSERT_EQ(All<ReluOp>(body).size(), 1U);
  ReluOp kept = All<ReluOp>(body)[0];
  EXPECT_EQ(pathOf(kept), "a");
  const PrecisionAttr precision = precisionOf(kept);
  ASSERT_EQ(precision.getReasons().size(), 2U);
  EXPECT_EQ(precision.getRule(), PrecisionRule::Cut);
  EXPECT_EQ(precision.getReasons()[1].getRule(), PrecisionRule::Level);
  EXPECT_EQ(precision.getReasons()[1].getDetail(), "O2");
  EXPECT_TRUE(precision.getUser());
  EXPECT_TRUE(precision.getFolded());
  AddOp sum = All<AddOp>(body)[0];
  EXPECT_EQ(sum.getA(), kept.getY());
  EXPECT_EQ(sum.getB(), kept.getY());
  EXPECT_FALSE(mergeEqualComputations(body));
}

TEST_F(Computations, OfEqualCastsOneStaysAndIsTheUsersIfOneWas) {
  mlir::Block& body = Parse(R"(
    %0 = mpc.cast %x : (tensor<4xf32>) -> tensor<4xf16>
    %1 = mpc.cast %x {user = true} : (tensor<4xf32>) -> tensor<4xf16>
    %2 = mpc.cast %x : (tensor<4xf32>) -> tensor<4xbf16>
    %3 = mpc.cast %y : (tensor<4xf32>) -> tensor<4xf16>
  )");
  EXPECT_TRUE(mergeEqualComputations(body));
  ASSERT_EQ(All<CastOp>(body).size(), 3U);
  EXPECT_TRUE(All<CastOp>(body)[0].getUser());
  EXPECT_FALSE(All<CastOp>(body)[1].getUser());
  EXPECT_FALSE(All<CastOp>(body)[2].getUser());
}

TEST_F(Computations, OperandsAndAttributesOfTheirOwnKeepApart) {
  mlir::Block& body = Parse(R"(
    %0 = mpc.mul_scalar %x {value = 2.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = mpc.mul_scalar %x {value = 3.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = mpc.mul_scalar %y {value = 2.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  )");
  EXPECT_FALSE(mergeEqualComputations(body));
  EXPECT_EQ(All<MulScalarOp>(body).size(), 3U);
}

TEST_F(Computations, AFoldPutsAValueInThePlaceOfTheOperation) {
  mlir::Block& body = Parse(R"(
    %low = mpc.cast %x : (tensor<4xf32>) -> tensor<4xf16>
    %wide = mpc.cast %low : (tensor<4xf16>) -> tensor<4xf32>
    %again = mpc.cast %wide : (tensor<4xf32>) -> tensor<4xf16>
    %read = mpc.relu %again : (tensor<4xf16>) -> tensor<4xf16>
  )");
  const std::vector<CastOp> casts = All<CastOp>(body);
  EXPECT_FALSE(replaceByFold(casts[0]));
  EXPECT_FALSE(replaceByFold(casts[1])) << "a rounding stays";
  EXPECT_TRUE(replaceByFold(casts[2]));
  EXPECT_EQ(All<ReluOp>(body)[0].getX(), casts[0]->getResult(0));
  EXPECT_EQ(All<CastOp>(body).size(), 2U);
}

TEST_F(Computations, AFoldInPlaceGoesOnAndAConstantStays) {
  mlir::Block& body = Parse(R"(
    %0 = mpc.reshape %x {shape = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<2x2xf32>
    %1 = mpc.reshape %0 {shape = array<i64: 4, 1>} : (tensor<2x2xf32>) -> tensor<4x1xf32>
    %2 = mpc.reshape %1 {shape = array<i64: 4>} : (tensor<4x1xf32>) -> tensor<4xf32>
    %read = mpc.relu %2 : (tensor<4xf32>) -> tensor<4xf32>
    %k = mpc.constant {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  )");
  std::vector<ReshapeOp> reshapes = All<ReshapeOp>(body);
  EXPECT_FALSE(replaceByFold(reshapes[1]));
  EXPECT_EQ(reshapes[1].getX(), body.getArgument(0)) << "it reads what the inner one read";
  EXPECT_TRUE(replaceByFold(reshapes[2]));
  EXPECT_EQ(All<ReluOp>(body)[0].getX(), body.getArgument(0));
  EXPECT_FALSE(replaceByFold(All<ConstantOp>(body)[0]));
}

TEST_F(Computations, ChainsThatNobodyReadsGoAtOnce) {
  mlir::Block& body = Parse(R"(
    %0 = mpc.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = mpc.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
    %2 = mpc.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
  )");
  EXPECT_TRUE(eraseDeadOperations(body));
  EXPECT_EQ(body.getOperations().size(), 1U);
  EXPECT_FALSE(eraseDeadOperations(body));
}

}  // namespace
}  // namespace mpc
