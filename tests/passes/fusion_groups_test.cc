// Which operations fusion puts together, what it says of the others, and what it reckons that regions move.
#include "passes/fusion/fusion_groups.h"

#include <string>
#include <vector>

#include "compiler/analysis/phases.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/fusion/fusion_body.h"
#include "passes/fusion/kept_values.h"

namespace mpc {
namespace {

constexpr std::int64_t kMatrix = 8 * 16 * 4;  ///< bytes of %x and of all matrices of its shape

class FusionGroupsTest : public ::testing::Test {
 protected:
  FusionGroupsTest() { context_.loadDialect<MpcDialect, mlir::func::FuncDialect>(); }

  /// The body of a function of %x, %z: tensor<8x16xf32>, %c: tensor<16xf32>, %w: tensor<16x16xf32>.
  mlir::Block& Parse(const std::string& body) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(%x: tensor<8x16xf32>, %z: tensor<8x16xf32>, %c: tensor<16xf32>, %w: tensor<16x16xf32>) -> (" +
            result_types_ + ") {\n" + body + "}\n",
        mlir::ParserConfig(&context_));
    if (!module_) {
      ADD_FAILURE() << "the test's IR does not parse";
      std::abort();
    }
    return (*module_->getOps<mlir::func::FuncOp>().begin()).getBody().front();
  }

  static FusionCosts Costs() { return {.bytesPerLaunch = 1000}; }

  /// The names of the operations of each region.
  static std::vector<std::string> Names(const FusionGroups& groups) {
    std::vector<std::string> names;
    for (const FusionGroup& region : groups.getRegions()) {
      names.emplace_back();
      for (mlir::Operation* op : region.operations) {
        names.back() += (names.back().empty() ? "" : " ") + op->getName().stripDialect().str();
      }
    }
    return names;
  }

  static std::string WhyLeftOut(const FusionGroup& region, llvm::StringRef op) {
    for (const FusionGroup::Neighbour& neighbour : region.leftOut) {
      if (neighbour.op->getName().stripDialect() == op) return neighbour.why;
    }
    return "not mentioned";
  }

  using List = std::vector<std::string>;
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::string result_types_ = "tensor<8x16xf32>";
};

TEST_F(FusionGroupsTest, AChainOfElementwiseOperationsIsOneRegionThatSavesItsIntermediateValues) {
  const FusionGroups groups(Parse(R"(
    %0 = mpc.add %x, %z : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = mpc.mul %0, %c : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    %2 = mpc.relu %1 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %2 : tensor<8x16xf32>
  )"),
                            Costs());
  ASSERT_EQ(Names(groups), List{"add mul relu"});
  // Two values are neither stored nor loaded again.
  EXPECT_EQ(groups.getRegions()[0].bytesSaved, 4 * kMatrix);
}

TEST_F(FusionGroupsTest, OnlyForwardValuesThatNeitherGroupMakesAreKeptMore) {
  mlir::Block& body = Parse(R"(
    %0 = mpc.relu %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = mpc.tanh %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = mpc.mul %z, %1 {mpc.backward} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %3 = mpc.abs %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %4 = mpc.abs %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %5 = mpc.sum_n %2, %3, %4 {mpc.backward} : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %5 : tensor<8x16xf32>
  )");
  std::vector<mlir::Operation*> op;
  for (mlir::Operation& each : body) op.push_back(&each);
  using Group = std::vector<mlir::Operation*>;
  const auto kept = [](const Group& a, const Group& b) {
    return bytesKeptMore(a, b, [](mlir::Value v) { return isReadBackward(v); });
  };
  // What tanh reads instead of what it makes; what the mixed group makes itself is not kept.
  EXPECT_EQ(kept({op[1]}, {op[2]}), 0);
  EXPECT_EQ(kept({op[1]}, {op[0], op[2]}), -kMatrix);
  // A gradient is there when the region runs, in the other group or not.
  EXPECT_EQ(kept({op[4]}, {op[2]}), -kMatrix);
  EXPECT_EQ(kept({op[4]}, {op[5]}), -kMatrix);
  EXPECT_EQ(kept({op[0]}, {op[1]}), 0);
}

TEST_F(FusionGroupsTest, AValueThatIsReadOutsideIsStoredButNotLoaded) {
  result_types_ = "tensor<8x16xf32>, tensor<8x16xf32>";
  mlir::Block& body = Parse(R"(
    %0 = mpc.add %x, %z : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = mpc.relu %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
  )");
  const FusionGroups groups(body, Costs());
  ASSERT_EQ(Names(groups), List{"add relu"});
  EXPECT_EQ(groups.getRegions()[0].bytesSaved, kMatrix);
  EXPECT_EQ(fusionBody(groups.getRegions()[0].operations).outputs.size(), 2U);
}

TEST_F(FusionGroupsTest, TwoReadersOfOneTensorLoadItOnce) {
  result_types_ = "tensor<8x16xf32>, tensor<8x16xf32>";
  const FusionGroups groups(Parse(R"(
    %0 = mpc.neg %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = mpc.relu %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
  )"),
                            Costs());
  ASSERT_EQ(Names(groups), List{"neg relu"});
  EXPECT_EQ(groups.getRegions()[0].bytesSaved, kMatrix);
}

TEST_F(FusionGroupsTest, OperationsThatShareOnlyASmallTensorAreNotNeighbours) {
  result_types_ = "tensor<8x16xf32>, tensor<8x16xf32>";
  const FusionGroups groups(Parse(R"(
    %0 = mpc.add %x, %c : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    %1 = mpc.add %z, %c : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    return %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
  )"),
                            Costs());
  EXPECT_EQ(Names(groups), List{});
}

TEST_F(FusionGroupsTest, AWayThroughAnotherOperationKeepsTwoGroupsApart) {
  const FusionGroups groups(Parse(R"(
    %0 = mpc.neg %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = mpc.matmul %0, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %2 = mpc.add %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %3 = mpc.relu %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %3 : tensor<8x16xf32>
  )"),
                            Costs());
  ASSERT_EQ(Names(groups), List{"add relu"});
  EXPECT_EQ(WhyLeftOut(groups.getRegions()[0], "matmul"), "it is not computed element by element");
  EXPECT_EQ(WhyLeftOut(groups.getRegions()[0], "neg"), "a way leads out of the region and back through matmul");
}

// neg and the first add could be one, and so could relu and the second add; together with the matrix products they
// would wait for each other.
TEST_F(FusionGroupsTest, TwoRegionsNeverNeedEachOther) {
  result_types_ = "tensor<8x16xf32>, tensor<8x16xf32>";
  mlir::Block& body = Parse(R"(
    %0 = mpc.neg %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = mpc.relu %z : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = mpc.matmul %0, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %3 = mpc.matmul %1, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %4 = mpc.add %0, %3 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %5 = mpc.add %1, %2 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %4, %5 : tensor<8x16xf32>, tensor<8x16xf32>
  )");
  const FusionGroups groups(body, Costs());
  EXPECT_EQ(Names(groups), List{"neg add"});
  // Every group comes behind what it depends on.
  llvm::SmallPtrSet<mlir::Operation*, 8> done;
  for (const unsigned group : groups.getGroups().schedule()) {
    for (mlir::Operation* op : groups.getGroups().members(group)) done.insert(op);
    for (mlir::Operation* op : groups.getGroups().members(group)) {
      for (const mlir::Value operand : op->getOperands()) {
        EXPECT_TRUE(operand.getDefiningOp() == nullptr || done.contains(operand.getDefiningOp()));
      }
    }
  }
}

TEST_F(FusionGroupsTest, ReshapesBetweenTwoOperationsAreInsideAndOthersAreNot) {
  result_types_ = "tensor<8x16xf32>, tensor<4x32xf32>";
  mlir::Block& body = Parse(R"(
    %0 = mpc.reshape %x {shape = array<i64: 128>} : (tensor<8x16xf32>) -> tensor<128xf32>
    %1 = mpc.neg %0 : (tensor<128xf32>) -> tensor<128xf32>
    %2 = mpc.reshape %1 {shape = array<i64: 8, 16>} : (tensor<128xf32>) -> tensor<8x16xf32>
    %3 = mpc.add %2, %c : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    %4 = mpc.reshape %3 {shape = array<i64: 4, 32>} : (tensor<8x16xf32>) -> tensor<4x32xf32>
    return %3, %4 : tensor<8x16xf32>, tensor<4x32xf32>
  )");
  const FusionGroups groups(body, Costs());
  ASSERT_EQ(Names(groups), List{"neg add"});
  const FusionBody region = fusionBody(groups.getRegions()[0].operations);
  std::string inside;
  for (mlir::Operation* op : region.operations) inside += op->getName().stripDialect().str() + " ";
  EXPECT_EQ(inside, "neg reshape add ");
  EXPECT_EQ(region.outputs.size(), 1U);
}

TEST_F(FusionGroupsTest, AnExpensiveElementIsNotComputedAgainForEachPhase) {
  const FusionGroups groups(Parse(R"(
    %0 = mpc.gelu %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %y, %mean, %inv_std = mpc.layer_norm %0, %c, %c
        : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>)
    %1 = mpc.relu %y : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  )"),
                            Costs());
  ASSERT_EQ(Names(groups), List{"layer_norm relu"});
  EXPECT_EQ(WhyLeftOut(groups.getRegions()[0], "gelu"), "gelu would be computed in several phases");
}

TEST_F(FusionGroupsTest, AnExpensiveElementThatIsStoredAnywayIsReadAgain) {
  result_types_ = "tensor<8x16xf32>, tensor<8x16xf32>";
  const FusionGroups groups(Parse(R"(
    %0 = mpc.gelu %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %y, %mean, %inv_std = mpc.layer_norm %0, %c, %c
        : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>)
    return %0, %y : tensor<8x16xf32>, tensor<8x16xf32>
  )"),
                            Costs());
  EXPECT_EQ(Names(groups), List{"gelu layer_norm"});
}

TEST_F(FusionGroupsTest, WhatIsSmallerThanARegionStaysOutsideUnlessItComesFromIt) {
  result_types_ = "tensor<8x16xf32>, tensor<16xf32>";
  const FusionGroups groups(Parse(R"(
    %0 = mpc.relu %c : (tensor<16xf32>) -> tensor<16xf32>
    %1 = mpc.mul %x, %0 : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    %2 = mpc.reduce_sum %1 {axes = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
    %3 = mpc.neg %2 : (tensor<16xf32>) -> tensor<16xf32>
    return %1, %3 : tensor<8x16xf32>, tensor<16xf32>
  )"),
                            Costs());
  ASSERT_EQ(Names(groups), List{"mul reduce_sum neg"});
  EXPECT_EQ(WhyLeftOut(groups.getRegions()[0], "relu"),
            "relu is smaller than the region and would be computed for every row");
}

TEST_F(FusionGroupsTest, RegionsStopAtTheirLimit) {
  FusionCosts costs = Costs();
  costs.maxOperations = 2;
  const FusionGroups groups(Parse(R"(
    %0 = mpc.neg %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = mpc.abs %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = mpc.relu %1 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %2 : tensor<8x16xf32>
  )"),
                            costs);
  ASSERT_EQ(Names(groups), List{"neg abs"});
  EXPECT_EQ(WhyLeftOut(groups.getRegions()[0], "relu"), "the region would have more than 2 operations");
}

constexpr char kAlone[] = R"(
    %0 = mpc.softmax %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = mpc.matmul %0, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %2 = mpc.neg %1 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %3 = mpc.relu %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %3 : tensor<8x16xf32>
  )";

TEST_F(FusionGroupsTest, AnOperationWithoutAKernelIsARegionThoughNoOtherJoinsIt) {
  FusionCosts costs = Costs();
  EXPECT_EQ(Names(FusionGroups(Parse(kAlone), costs)), List{"neg relu"});
  costs.alsoAlone = LoneFusions::WithoutKernel;
  const FusionGroups groups(Parse(kAlone), costs);
  ASSERT_EQ(Names(groups), (List{"softmax", "neg relu"}));
  EXPECT_EQ(groups.getRegions()[0].bytesSaved, 0);
  EXPECT_EQ(WhyLeftOut(groups.getRegions()[0], "matmul"), "it is not computed element by element");
  costs.maxOperations = 1;
  EXPECT_EQ(Names(FusionGroups(Parse(kAlone), costs)), List{"softmax"});
}

// A sweep over columns ends before the gradient can be had: what feeds it is loaded twice.
TEST_F(FusionGroupsTest, LoadsThatALaterSweepRepeatsAreWeighed) {
  result_types_ = "tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>";
  const std::string body = R"(
    %0 = mpc.sum_n %x, %z, %x1, %z1
        : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %dx, %dgamma, %dbeta = mpc.batch_norm_train_grad %0, %x2, %c, %c, %c
        : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
        -> (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>)
    return %dx, %dgamma, %dbeta : tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>
  )";
  const std::string sources = R"(
    %x1 = mpc.matmul %x, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z1 = mpc.matmul %z, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %x2 = mpc.matmul %x1, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  )";
  // Alone 5 + 5 matrices, together 11.
  EXPECT_EQ(Names(FusionGroups(Parse(sources + body), {.bytesPerLaunch = 0})), List{});
  EXPECT_EQ(Names(FusionGroups(Parse(sources + body), {.bytesPerLaunch = 2 * kMatrix})),
            List{"sum_n batch_norm_train_grad"});
}

TEST_F(FusionGroupsTest, UpdatesOfStateStayOutsideAndBehindTheReadersOfTheOldState) {
  result_types_ = "tensor<16xf32>, tensor<16xf32>, tensor<8x16xf32>";
  mlir::Block& body = Parse(R"(
    %rate = mpc.constant {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
    %0 = mpc.mul %x, %c : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
    %g = mpc.reduce_sum %z {axes = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
    %c1, %v1 = mpc.momentum %c, %g, %g, %rate
        : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<f32>) -> (tensor<16xf32>, tensor<16xf32>)
    %1 = mpc.relu %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %c1, %v1, %1 : tensor<16xf32>, tensor<16xf32>, tensor<8x16xf32>
  )");
  const FusionGroups groups(body, Costs());
  ASSERT_EQ(Names(groups), List{"mul relu"});
  std::vector<std::string> order;
  for (const unsigned group : groups.getGroups().schedule()) {
    order.push_back(groups.getGroups().members(group).back()->getName().stripDialect().str());
  }
  EXPECT_EQ(order, (List{"constant", "reduce_sum", "relu", "momentum"}));
}

}  // namespace
}  // namespace mpc
