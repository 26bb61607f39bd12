// The order that a block's operations must keep: values, state in place, effects, storage that is read until a wait;
// and views before their readers.
#include "compiler/analysis/block_dependences.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

namespace mpc {
namespace {

class BlockDependencesTest : public ::testing::Test {
 protected:
  BlockDependencesTest() { context_.loadDialect<MpcDialect, mlir::func::FuncDialect>(); }

  /// The body of the first function.
  mlir::Block& Parse(const std::string& text) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context_));
    EXPECT_TRUE(module_);
    return (*module_->getOps<mlir::func::FuncOp>().begin()).getBody().front();
  }

  using Numbers = std::vector<unsigned>;
  static Numbers Before(const BlockDependences& dependences, unsigned number) {
    return {dependences.before(number).begin(), dependences.before(number).end()};
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(BlockDependencesTest, AReaderComesAfterWhatComputesItsValueBehindViews) {
  mlir::Block& body = Parse(R"(
    func.func @f(%x: tensor<2x2xf32>) -> tensor<4xf32> {
      %a = mpc.relu %x : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %v = mpc.reshape %a {shape = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
      %b = mpc.exp %v : (tensor<4xf32>) -> tensor<4xf32>
      %c = mpc.tanh %x : (tensor<2x2xf32>) -> tensor<2x2xf32>
      return %b : tensor<4xf32>
    })");
  const BlockDependences dependences(body);
  ASSERT_EQ(dependences.size(), 3U) << "a view and the terminator have no number";
  EXPECT_EQ(Before(dependences, 0), Numbers());
  EXPECT_EQ(Before(dependences, 1), Numbers({0}));
  EXPECT_EQ(Before(dependences, 2), Numbers());
  EXPECT_EQ(dependences.after(0).vec(), Numbers({1}));
  EXPECT_EQ(dependences.numberOf(*body.getOps<ExpOp>().begin()), 1U);
  EXPECT_EQ(dependences.numberOf(*body.getOps<ReshapeOp>().begin()), std::nullopt);
  EXPECT_EQ(dependences.numberOf(body.getTerminator()), std::nullopt);
}

TEST_F(BlockDependencesTest, AReaderOfStateComesBeforeItsUpdate) {
  mlir::Block& body = Parse(R"(
    func.func @f(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                 %t: tensor<i32> {mpc.state = #mpc.state<step, "t">})
        -> (tensor<4xf32>, tensor<i32> {mpc.state = #mpc.state<step, "t">}) attributes {mpc.step} {
      %a = mpc.relu %w : (tensor<4xf32>) -> tensor<4xf32>
      %early = mpc.cast %t : (tensor<i32>) -> tensor<f32>
      %next = mpc.increment %t : (tensor<i32>) -> tensor<i32>
      %late = mpc.cast %t : (tensor<i32>) -> tensor<f32>
      return %a, %next : tensor<4xf32>, tensor<i32>
    })");
  const BlockDependences dependences(body);
  EXPECT_EQ(Before(dependences, 2), Numbers({1})) << "the reader before it, not the one behind it";
  EXPECT_EQ(Before(dependences, 3), Numbers());
}

TEST_F(BlockDependencesTest, AReaderOfAShadowComesBeforeTheOptimizerThatWritesIt) {
  mlir::Block& body = Parse(R"(
    func.func @f(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                 %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v", of = "w">},
                 %low: tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}, %g: tensor<4xf32>,
                 %lr: tensor<f32>)
        -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
            tensor<4xf32> {mpc.state = #mpc.state<slot, "v">},
            tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16">}, tensor<4xf16>) attributes {mpc.step} {
      %read = mpc.relu %low : (tensor<4xf16>) -> tensor<4xf16>
      %new:3 = mpc.momentum %w, %v, %g, %lr {shadow = "f16"}
          : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
      return %new#0, %new#1, %new#2, %read : tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<4xf16>
    })");
  const BlockDependences dependences(body);
  EXPECT_EQ(Before(dependences, 1), Numbers({0}));
}

TEST_F(BlockDependencesTest, OperationsWithEffectsKeepTheirOrder) {
  mlir::Block& body = Parse(R"(
    func.func @f(%x: tensor<4xf32>) {
      %0 = call @outside(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = mpc.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      %2 = call @outside(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %3 = call @outside(%2) : (tensor<4xf32>) -> tensor<4xf32>
      return
    }
    func.func private @outside(tensor<4xf32>) -> tensor<4xf32>)");
  const BlockDependences dependences(body);
  EXPECT_EQ(Before(dependences, 1), Numbers()) << "a pure operation is free";
  EXPECT_EQ(Before(dependences, 2), Numbers({0})) << "no value joins them";
  EXPECT_EQ(Before(dependences, 3), Numbers({2, 2})) << "a value and an effect";
}

TEST_F(BlockDependencesTest, WhatARegionReadsCountsForTheOperationThatHoldsIt) {
  mlir::Block& body = Parse(R"(
    func.func @f(%x: tensor<4xf32>, %t: tensor<i32>, %ok: tensor<i1>) -> tensor<i32> {
      %a = mpc.cast %x : (tensor<4xf32>) -> tensor<4xi32>
      %n = mpc.cast %t : (tensor<i32>) -> tensor<i32>
      %new = mpc.guarded_update %ok else(%t) {
        %next = mpc.increment %n : (tensor<i32>) -> tensor<i32>
        mpc.yield %next : tensor<i32>
      } : (tensor<i1>, tensor<i32>) -> tensor<i32>
      return %new : tensor<i32>
    })");
  const BlockDependences dependences(body);
  EXPECT_EQ(Before(dependences, 2), Numbers({1}));
}

constexpr const char* kSumBesideAnUpdate = R"(
    func.func @f(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                 %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v">}, %g: tensor<4xf32>, %lr: tensor<f32>)
        -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "v">},
            tensor<2x2xf32>) attributes {mpc.step} {
      %view = mpc.reshape %w {shape = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<2x2xf32>
      %started = mpc.all_reduce_start %view : tensor<2x2xf32>
      %a = mpc.relu %g : (tensor<4xf32>) -> tensor<4xf32>
      %sum = mpc.all_reduce_wait %started : tensor<2x2xf32>
      %new:2 = mpc.momentum %w, %v, %a, %lr
          : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
      %flat = mpc.reshape %sum {shape = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
      %y = mpc.exp %flat : (tensor<4xf32>) -> tensor<4xf32>
      %z = mpc.reshape %y {shape = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<2x2xf32>
      return %new#0, %new#1, %z : tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>
    })";

TEST_F(BlockDependencesTest, AWaitComesBeforeReadersOfTheSumAndUpdatesOfWhatItsStartReads) {
  mlir::Block& body = Parse(kSumBesideAnUpdate);
  const BlockDependences dependences(body);
  ASSERT_EQ(dependences.size(), 5U) << "start, relu, wait, momentum, exp";
  EXPECT_EQ(dependences.numberOf(*body.getOps<AllReduceWaitOp>().begin()), 2U) << "a view, but with effects";
  EXPECT_EQ(Before(dependences, 0), Numbers());
  EXPECT_EQ(Before(dependences, 1), Numbers()) << "other operations run beside the sum";
  EXPECT_EQ(Before(dependences, 2), Numbers({0, 0})) << "a value and an effect";
  EXPECT_EQ(Before(dependences, 3), Numbers({1, 0, 2})) << "the start reads %w until the wait";
  EXPECT_EQ(Before(dependences, 4), Numbers({2})) << "behind a view of the wait";
}

TEST_F(BlockDependencesTest, AWaitReadsTheStorageThatItsStartReads) {
  mlir::Block& body = Parse(kSumBesideAnUpdate);
  const BlockDependences dependences(body);
  const mlir::Value w = body.getArgument(0), started = (*body.getOps<AllReduceStartOp>().begin()).getY();
  EXPECT_EQ(dependences.reads(0).vec(), std::vector<mlir::Value>({w}));
  EXPECT_EQ(dependences.reads(2).vec(), std::vector<mlir::Value>({started, w}));
  EXPECT_EQ(dependences.reads(4).vec(), std::vector<mlir::Value>({started})) << "a wait has no storage of its own";
  EXPECT_EQ(dependences.readersOf(w).vec(), Numbers({0, 2, 3}));
  EXPECT_EQ(dependences.readersOf((*body.getOps<ReshapeOp>().begin()).getY()).vec(), Numbers({0, 2, 3}));
  EXPECT_EQ(dependences.readersOf(started).vec(), Numbers({2, 4}));
  EXPECT_EQ(dependences.readersOf((*body.getOps<ExpOp>().begin()).getY()).vec(), Numbers());
}

TEST_F(BlockDependencesTest, TheFirstUpdateOfStateIsKnown) {
  mlir::Block& body = Parse(kSumBesideAnUpdate);
  const BlockDependences dependences(body);
  EXPECT_EQ(dependences.updateOf(body.getArgument(0)), 3U);
  EXPECT_EQ(dependences.updateOf((*body.getOps<ReshapeOp>().begin()).getY()), 3U) << "behind a view";
  EXPECT_EQ(dependences.updateOf(body.getArgument(1)), 3U);
  EXPECT_EQ(dependences.updateOf(body.getArgument(2)), std::nullopt);
}

TEST_F(BlockDependencesTest, OnlyWhatHasNoEffectsAndUpdatesNoStateMayRunAgain) {
  mlir::Block& body = Parse(kSumBesideAnUpdate);
  std::vector<std::string> names;
  for (mlir::Operation& op : body.without_terminator()) {
    if (mayRunAgain(&op)) names.push_back(op.getName().stripDialect().str());
  }
  EXPECT_EQ(names, std::vector<std::string>({"reshape", "relu", "reshape", "exp", "reshape"}));
}

TEST_F(BlockDependencesTest, WhatHoldsAnUpdateMayNotRunAgain) {
  mlir::Block& body = Parse(R"(
    func.func @f(%t: tensor<i32>, %ok: tensor<i1>) -> tensor<i32> {
      %new = mpc.guarded_update %ok else(%t) {
        %next = mpc.increment %t : (tensor<i32>) -> tensor<i32>
        mpc.yield %next : tensor<i32>
      } : (tensor<i1>, tensor<i32>) -> tensor<i32>
      return %new : tensor<i32>
    })");
  EXPECT_FALSE(mayRunAgain(&body.front()));
}

TEST_F(BlockDependencesTest, AWaitDoesNotMoveAsAView) {
  mlir::Block& body = Parse(kSumBesideAnUpdate);
  const ViewMover views(body);
  EXPECT_EQ(views.getLeft().size(), 3U) << "reshapes alone";
  for (mlir::Operation* view : views.getLeft()) EXPECT_TRUE(mlir::isa<ReshapeOp>(view));
}

TEST_F(BlockDependencesTest, ViewsMoveInFrontOfTheirFirstReader) {
  mlir::Block& body = Parse(R"(
    func.func @f(%x: tensor<2x2xf32>) -> tensor<4xf32> {
      %v = mpc.reshape %x {shape = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
      %w = mpc.reshape %v {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
      %unread = mpc.reshape %x {shape = array<i64: 1, 4>} : (tensor<2x2xf32>) -> tensor<1x4xf32>
      %a = mpc.relu %x : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %b = mpc.exp %w : (tensor<4x1xf32>) -> tensor<4x1xf32>
      return %v : tensor<4xf32>
    })");
  const std::vector<mlir::Operation*> in_order = {*body.getOps<ExpOp>().begin(), *body.getOps<ReluOp>().begin()};
  ViewMover views(body);
  for (mlir::Operation* op : in_order) {
    views.moveFor(op);
    op->moveBefore(body.getTerminator());
  }
  views.moveFor(body.getTerminator());
  ASSERT_EQ(views.getLeft().size(), 1U);
  std::vector<std::string> names;
  for (mlir::Operation& op : body) names.push_back(op.getName().stripDialect().str());
  EXPECT_EQ(names, std::vector<std::string>({"reshape", "reshape", "reshape", "exp", "relu", "return"}));
  EXPECT_EQ(behindViews((*body.getOps<ExpOp>().begin()).getX()), body.getArgument(0));
}

// Recursion over the chain would overflow the stack.
TEST_F(BlockDependencesTest, AChainOfViewsOfAnyLengthMoves) {
  constexpr int kViews = 200'000;
  mlir::Block& body = Parse(R"(
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    })");
  mlir::Operation* terminator = body.getTerminator();
  mlir::OpBuilder builder(terminator);
  mlir::Value last = body.getArgument(0);
  for (int i = 0; i < kViews; ++i) {
    last = ReshapeOp::create(builder, terminator->getLoc(), last.getType(), last, llvm::ArrayRef<std::int64_t>{4});
  }
  auto other = ReluOp::create(builder, terminator->getLoc(), last.getType(), body.getArgument(0));
  terminator->setOperand(0, last);
  ViewMover views(body);
  other->moveBefore(terminator);
  views.moveFor(terminator);
  EXPECT_TRUE(views.getLeft().empty());
  EXPECT_EQ(&body.front(), other.getOperation());
  EXPECT_EQ(terminator->getPrevNode(), last.getDefiningOp());
}

}  // namespace
}  // namespace mpc
