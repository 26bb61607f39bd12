// How operations lie over rows and columns, and what they say where they cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/fusion_plan.h"
#include "tests/compiler/op_case_module.h"

namespace mpc::test {
namespace {

using namespace codegen;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The only fusible operation of a function's body.
class FusibleSpace : public testing::Test {
 protected:
  FusibleOpInterface Parse(const std::string& arguments, const std::string& operation) {
    module_ = ParseModule(*context_, "func.func @f(" + arguments + ") {\n" + operation + "\nreturn\n}");
    FusibleOpInterface found;
    if (module_) module_->walk([&](FusibleOpInterface op) { found = op; });
    EXPECT_TRUE(found) << operation;
    return found;
  }
  OperationSpace SpaceOf(const std::string& arguments, const std::string& operation) {
    auto space = Parse(arguments, operation).getSpace();
    if (space) return *space;
    ADD_FAILURE() << llvm::toString(space.takeError());
    return {};
  }
  std::string RefusalOf(const std::string& arguments, const std::string& operation) {
    auto space = Parse(arguments, operation).getSpace();
    return space ? "none" : llvm::toString(space.takeError());
  }

  std::unique_ptr<mlir::MLIRContext> context_ = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

std::string Reduce(const std::string& axes, const std::string& result, const std::string& op = "reduce_sum") {
  return "%y = mpc." + op + " %x {axes = array<i64" + (axes.empty() ? "" : ": " + axes) +
         ">} : (tensor<2x3x1x4xf32>) -> tensor<" + result + "f32>";
}
const char* const kImage = "%x: tensor<2x3x1x4xf32>";

TEST_F(FusibleSpace, TrailingAxesAreRows) {
  const OperationSpace space = SpaceOf(kImage, Reduce("2, 3", "2x3x"));
  EXPECT_EQ(space.elements, 24);
  EXPECT_EQ(space.columns, 4);
  EXPECT_THAT(space.results, ElementsAre(Extent::PerRow));
}

TEST_F(FusibleSpace, TheGradientOfAMaximumSharesIt) {
  const char* const arguments = "%x: tensor<2x3x1x4xf32>, %y: tensor<2x3xf32>, %all: tensor<f32>";
  const OperationSpace rows = SpaceOf(arguments,
                                      "%dx = mpc.reduce_max_grad %y, %x, %y {axes = array<i64: 2, 3>} : "
                                      "(tensor<2x3xf32>, tensor<2x3x1x4xf32>, tensor<2x3xf32>) -> tensor<2x3x1x4xf32>");
  EXPECT_EQ(rows.columns, 4);
  EXPECT_THAT(rows.operands, ElementsAre(Extent::PerRow, Extent::Full, Extent::PerRow));
  const OperationSpace all = SpaceOf(arguments,
                                     "%dx = mpc.reduce_max_grad %all, %x, %all {axes = array<i64>} : "
                                     "(tensor<f32>, tensor<2x3x1x4xf32>, tensor<f32>) -> tensor<2x3x1x4xf32>");
  EXPECT_THAT(all.operands, ElementsAre(Extent::Single, Extent::Full, Extent::Single));
  EXPECT_THAT(RefusalOf("%x: tensor<16777217xf32>, %y: tensor<f32>",
                        "%dx = mpc.reduce_max_grad %y, %x, %y {axes = array<i64: 0>} : (tensor<f32>, "
                        "tensor<16777217xf32>, tensor<f32>) -> tensor<16777217xf32>"),
              HasSubstr("more than 2^24 elements share a maximum"));
}

TEST_F(FusibleSpace, SlopesAreOneForAllOrOneAColumn) {
  const auto grad = [](const std::string& slopes, const std::string& format) {
    return "%dx, %da = mpc.prelu_grad %x, %x, %a {data_format = \"" + format +
           "\"} : (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, " + slopes + ") -> (tensor<2x3x5x4xf32>, " + slopes + ")";
  };
  const std::string x = "%x: tensor<2x3x5x4xf32>, %a: ";
  const OperationSpace one = SpaceOf(x + "tensor<1xf32>", grad("tensor<1xf32>", "NCHW"));
  EXPECT_THAT(one.results, ElementsAre(Extent::Full, Extent::Single));
  const OperationSpace many = SpaceOf(x + "tensor<4xf32>", grad("tensor<4xf32>", "NHWC"));
  EXPECT_EQ(many.columns, 4);
  EXPECT_THAT(many.operands, ElementsAre(Extent::Full, Extent::Full, Extent::PerColumn));
  EXPECT_THAT(many.results, ElementsAre(Extent::Full, Extent::PerColumn));
  EXPECT_THAT(RefusalOf(x + "tensor<3xf32>", grad("tensor<3xf32>", "NCHW")), HasSubstr("they must be the last"));
}

TEST_F(FusibleSpace, LeadingAxesAreColumns) {
  const OperationSpace space = SpaceOf(kImage, Reduce("0", "3x1x4x"));
  EXPECT_EQ(space.columns, 12);
  EXPECT_THAT(space.results, ElementsAre(Extent::PerColumn));
}

TEST_F(FusibleSpace, AllAxesAreOneSum) {
  EXPECT_THAT(SpaceOf(kImage, Reduce("", "")).results, ElementsAre(Extent::Single));
  EXPECT_THAT(SpaceOf(kImage, Reduce("0, 1, 3", "1x")).results, ElementsAre(Extent::Single));
}

TEST_F(FusibleSpace, ReducingExtentsOfOneIsNoReduction) {
  EXPECT_THAT(SpaceOf(kImage, Reduce("2", "2x3x4x", "reduce_mean")).results, ElementsAre(Extent::Full));
  EXPECT_THAT(Parse(kImage, Reduce("2", "2x3x4x", "reduce_mean")).getReductions(), IsEmpty());
}

TEST_F(FusibleSpace, AxesInTheMiddleAreRefused) {
  EXPECT_EQ(RefusalOf(kImage, Reduce("1", "2x1x4x")),
            "mpc.reduce_sum: the axes that it reduces of tensor<2x3x1x4xf32> are neither the first nor the last ones");
  EXPECT_THAT(RefusalOf(kImage, Reduce("0, 3", "3x1x")), HasSubstr("neither the first nor the last"));
  EXPECT_THAT(RefusalOf(kImage, Reduce("0", "3x1x4x", "reduce_max")), HasSubstr("mpc.reduce_max"));
}

TEST_F(FusibleSpace, SoftmaxGoesAlongTheLastAxis) {
  EXPECT_EQ(SpaceOf("%x: tensor<2x5xf16>", "%y = mpc.softmax %x : (tensor<2x5xf16>) -> tensor<2x5xf16>").columns, 5);
  EXPECT_EQ(SpaceOf("%x: tensor<2x5x1xf16>",
                    "%y = mpc.softmax %x {axis = 1 : i64} : (tensor<2x5x1xf16>) -> tensor<2x5x1xf16>")
                .columns,
            5);
  EXPECT_EQ(
      RefusalOf("%x: tensor<2x5xf16>", "%y = mpc.softmax %x {axis = 0 : i64} : (tensor<2x5xf16>) -> tensor<2x5xf16>"),
      "mpc.softmax: its axis 0 is not the last of tensor<2x5xf16>; rows are contiguous");
}

std::string BatchNorm(const std::string& x, const std::string& format) {
  return "%y:4 = mpc.batch_norm_train %x, %p, %p {data_format = \"" + format + "\"} : (" + x +
         ", tensor<3xf32>, tensor<3xf32>) -> (" + x + ", tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)";
}

TEST_F(FusibleSpace, BatchNormTakesChannelsLast) {
  const auto arguments = [](const std::string& x) { return "%x: " + x + ", %p: tensor<3xf32>"; };
  const std::string last = "tensor<2x4x5x3xf32>", first = "tensor<2x3x4x5xf32>", points = "tensor<2x3x1x1xf32>";
  const OperationSpace space = SpaceOf(arguments(last), BatchNorm(last, "NHWC"));
  EXPECT_EQ(space.columns, 3);
  EXPECT_THAT(space.operands, ElementsAre(Extent::Full, Extent::PerColumn, Extent::PerColumn));
  EXPECT_THAT(space.results, ElementsAre(Extent::Full, Extent::PerColumn, Extent::PerColumn, Extent::PerColumn));
  EXPECT_EQ(SpaceOf(arguments(points), BatchNorm(points, "NCHW")).columns, 3);
  EXPECT_EQ(RefusalOf(arguments(first), BatchNorm(first, "NCHW")),
            "mpc.batch_norm_train: the channels of tensor<2x3x4x5xf32> are axis 1; they must be the last, as in NHWC");
}

std::string CrossEntropy(const std::string& labels, const std::string& reduction, const std::string& loss) {
  return "%l:2 = mpc.softmax_cross_entropy %x, %t {reduction = \"" + reduction + "\"} : (tensor<4x7xbf16>, " + labels +
         ") -> (tensor<" + loss + "f32>, tensor<4xf32>)";
}

TEST_F(FusibleSpace, CrossEntropyKeepsALossARowOrSumsAll) {
  const std::string sparse = "tensor<4xi64>", dense = "tensor<4x7xf32>";
  const OperationSpace mean = SpaceOf("%x: tensor<4x7xbf16>, %t: " + sparse, CrossEntropy(sparse, "mean", ""));
  EXPECT_THAT(mean.operands, ElementsAre(Extent::Full, Extent::PerRow));
  EXPECT_THAT(mean.results, ElementsAre(Extent::Single, Extent::PerRow));
  const OperationSpace none = SpaceOf("%x: tensor<4x7xbf16>, %t: " + dense, CrossEntropy(dense, "none", "4x"));
  EXPECT_THAT(none.operands, ElementsAre(Extent::Full, Extent::Full));
  EXPECT_THAT(none.results, ElementsAre(Extent::PerRow, Extent::PerRow));
}

TEST_F(FusibleSpace, CastsThatRoundWhatF32CannotHoldAreRefused) {
  EXPECT_EQ(RefusalOf("%x: tensor<4xi32>", "%y = mpc.cast %x : (tensor<4xi32>) -> tensor<4xf16>"),
            "mpc.cast: from i32 to f16 it rounds a number that f32 may not hold");
}

TEST_F(FusibleSpace, ASumOfSquaresIsF64AndNothingReadsItInItsRegion) {
  FusibleOpInterface sum = Parse("%x: tensor<4xf32>", "%y = mpc.sum_of_squares %x : (tensor<4xf32>) -> tensor<f64>");
  auto plan = FusionPlan::create(llvm::ArrayRef<mlir::Operation*>{sum.getOperation()});
  EXPECT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
  FusibleOpInterface clip = Parse("%x: tensor<4xf32>, %n: tensor<f64>",
                                  "%y = mpc.clip_by_norm %x, %n {max_norm = 1.0 : f32} "
                                  ": (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>");
  auto refused = FusionPlan::create(llvm::ArrayRef<mlir::Operation*>{clip.getOperation()});
  ASSERT_FALSE(bool(refused));
  EXPECT_EQ(llvm::toString(refused.takeError()),
            "mpc.clip_by_norm: it computes in f32, and f64 is for the reference alone");
}

TEST_F(FusibleSpace, RegionsHaveNoF64) {
  FusibleOpInterface op = Parse("%x: tensor<4xf64>", "%y = mpc.relu %x : (tensor<4xf64>) -> tensor<4xf64>");
  auto plan = FusionPlan::create(llvm::ArrayRef<mlir::Operation*>{op.getOperation()});
  ASSERT_FALSE(bool(plan));
  EXPECT_EQ(llvm::toString(plan.takeError()), "mpc.relu: it computes in f32, and f64 is for the reference alone");
}

/// The plan of a whole body; the first results of the first `stored` operations are stored.
class FusionPlans : public FusibleSpace {
 protected:
  std::string RefusalOfBody(const std::string& arguments, const std::string& body, std::size_t stored = 0) {
    module_ = ParseModule(*context_, "func.func @f(" + arguments + ") {\n" + body + "\nreturn\n}");
    if (!module_) return "not parsed";
    llvm::SmallVector<mlir::Operation*> operations;
    module_->walk([&](FusibleOpInterface op) { operations.push_back(op); });
    llvm::SmallVector<mlir::Value> kept;
    for (std::size_t i = 0; i < stored; ++i) kept.push_back(operations[i]->getResult(0));
    auto plan = FusionPlan::create(operations, kept);
    return plan ? "none" : llvm::toString(plan.takeError());
  }
};

// The first sweep alone has a row's sums: an element that follows from them can be read in the second one only where it
// was stored.
TEST_F(FusionPlans, RowsAreNotReducedAgainInALaterSweep) {
  const std::string arguments =
      "%dy: tensor<8x6xf32>, %x: tensor<8x6xf32>, %g: tensor<6xf32>, %m: tensor<8xf32>, %i: tensor<8xf32>, "
      "%z: tensor<8x6xf32>, %c: tensor<6xf32>";
  const std::string body =
      "%dx, %dg, %db = mpc.layer_norm_grad %dy, %x, %g, %m, %i : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<6xf32>, "
      "tensor<8xf32>, tensor<8xf32>) -> (tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>)\n"
      "%q, %p, %o = mpc.batch_norm_train_grad %dx, %z, %c, %c, %c : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<6xf32>, "
      "tensor<6xf32>, tensor<6xf32>) -> (tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>)";
  EXPECT_THAT(RefusalOfBody(arguments, body), HasSubstr("the reduced value of a row after a reduction of columns"));
  EXPECT_EQ(RefusalOfBody(arguments, body, 1), "none");
}

TEST_F(FusionPlans, NeitherAreTheMeansOfRows) {
  EXPECT_THAT(RefusalOfBody("%x: tensor<8x6xf32>",
                            "%m = mpc.reduce_mean %x {axes = array<i64: 1>, keep_dims = true} : (tensor<8x6xf32>) -> "
                            "tensor<8x1xf32>\n"
                            "%d = mpc.sub %x, %m : (tensor<8x6xf32>, tensor<8x1xf32>) -> tensor<8x6xf32>\n"
                            "%s = mpc.reduce_sum %d {axes = array<i64: 0>} : (tensor<8x6xf32>) -> tensor<6xf32>\n"
                            "%e = mpc.mul %d, %s : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>"),
              HasSubstr("the reduced value of a row after a reduction of columns"));
}

}  // namespace
}  // namespace mpc::test
