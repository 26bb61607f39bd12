// What a step returns for slots.
#include "passes/precision/slot_probes.h"

#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "gtest/gtest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

namespace mpc {
namespace {

constexpr const char* kStep = R"(
func.func @step(%x: tensor<2x3xf32>, %w: tensor<3x3xf32>) -> (tensor<f32>, tensor<3x3xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l, %dw = mpc.value_and_grad @forward(%x, %w) seed(%one) {wrt = array<i64: 1>}
      : (tensor<2x3xf32>, tensor<3x3xf32>, tensor<f32>) -> (tensor<f32>, tensor<3x3xf32>)
  return %l, %dw : tensor<f32>, tensor<3x3xf32>
}
func.func private @forward(%x: tensor<2x3xf32>, %w: tensor<3x3xf32>) -> tensor<f32> {
  %y = mpc.matmul %x, %w in "net/a" : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %r = mpc.relu %y in "net" : tensor<2x3xf32>
  %z = mpc.matmul %r, %w in "net/b" : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
  %l = mpc.reduce_sum %z {axes = []} in "net" : (tensor<2x3xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
)";

class SlotProbesTest : public ::testing::Test {
 protected:
  SlotProbesTest() {
    context_.loadDialect<MpcDialect, mlir::func::FuncDialect>();
    module_ = mlir::parseSourceString<mlir::ModuleOp>(kStep, &context_);
  }

  mlir::func::FuncOp Find(const char* name) { return module_->lookupSymbol<mlir::func::FuncOp>(name); }

  mlir::MLIRContext context_{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

const SlotPoint& PointAt(const SlotProbes& probes, std::size_t slot, std::size_t point) {
  return probes.slots.at(slot).points.at(point);
}

TEST_F(SlotProbesTest, ReturnsWhatASlotReadsAndWritesOnceAndItsCotangent) {
  ASSERT_TRUE(module_);
  const SlotProbes probes = probeSlots(*module_, {"net/a#matmul.0", "net#relu.0", "net/b#matmul.0", "net/c#matmul.0"});
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*module_)));
  ASSERT_EQ(probes.slots.size(), 3U) << "there is no net/c";
  // x, w at its first use, y; r; w at its second use, z.
  EXPECT_EQ(probes.points, 6);
  EXPECT_EQ(probes.slots[0].points.size(), 3U);
  EXPECT_EQ(probes.slots[2].points.size(), 3U);
  EXPECT_EQ(PointAt(probes, 0, 2).place, PointAt(probes, 1, 0).place) << "y is written and read";
  EXPECT_EQ(PointAt(probes, 1, 1).place, PointAt(probes, 2, 0).place) << "r is written and read";
  EXPECT_NE(PointAt(probes, 0, 1).place, PointAt(probes, 2, 1).place) << "w has a cotangent at each use";
  EXPECT_EQ(Find("step").getNumResults(), 2U + 2 * 6);
  EXPECT_EQ(Find("forward").getNumArguments(), 2U + 6);
  EXPECT_EQ(Find("forward").getNumResults(), 1U + 6);
}

TEST_F(SlotProbesTest, MovementRoundsWhatItReadsAndTheCotangentOfWhatItWrites) {
  const SlotProbes probes = probeSlots(*module_, {"net#relu.0"});
  ASSERT_EQ(probes.slots.size(), 1U);
  ASSERT_EQ(probes.slots[0].points.size(), 2U);
  EXPECT_TRUE(PointAt(probes, 0, 0).roundsValue);
  EXPECT_FALSE(PointAt(probes, 0, 0).roundsCotangent);
  EXPECT_FALSE(PointAt(probes, 0, 1).roundsValue);
  EXPECT_TRUE(PointAt(probes, 0, 1).roundsCotangent);
}

TEST_F(SlotProbesTest, AModuleWithoutOneRequestForGradientsIsLeftAlone) {
  Find("step").erase();
  EXPECT_TRUE(probeSlots(*module_, {"net#relu.0"}).slots.empty());
  EXPECT_EQ(Find("forward").getNumArguments(), 2U);
}

}  // namespace
}  // namespace mpc
