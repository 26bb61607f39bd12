// What the compiler says of targets, and what it refuses.
#include "compiler/target/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/lowering/lowering.h"
#include "kernels/weight_packing.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/executable.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using ::testing::HasSubstr;

/// A module for a target with a function of `body` over %x: tensor<8x16xf32>.
class Targets : public testing::Test {
 protected:
  mlir::func::FuncOp Parse(const std::string& target, const std::string& body) {
    module_ =
        ParseModule(*context_, "module attributes {mpc.target = #mpc.target<" + target +
                                   ">} { func.func @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {" + body + "} }");
    EXPECT_TRUE(module_);
    return *module_->getOps<mlir::func::FuncOp>().begin();
  }

  std::unique_ptr<TargetModel> ModelOf(const std::string& target,
                                       const std::string& body = "return %x : tensor<8x16xf32>") {
    llvm::FailureOr<std::unique_ptr<TargetModel>> model = targetModelOf(Parse(target, body));
    return mlir::failed(model) ? nullptr : *std::move(model);
  }

  /// What is said of `target`, which has no model.
  std::string ErrorOf(const std::string& target) {
    std::string error;
    mlir::ScopedDiagnosticHandler collect(context_.get(), [&](mlir::Diagnostic& diagnostic) {
      error = diagnostic.str();
      return mlir::success();
    });
    EXPECT_EQ(ModelOf(target), nullptr);
    return error;
  }

  std::unique_ptr<mlir::MLIRContext> context_ = MakeContext();
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(Targets, DifferInWhatPassesWeigh) {
  const auto cpu = ModelOf("\"cpu\""), cuda = ModelOf("\"cuda\"");
  ASSERT_TRUE(cpu && cuda);
  EXPECT_LT(cpu->bytesPerLaunch(), cuda->bytesPerLaunch());
  EXPECT_EQ(cpu->loneFusions(), LoneFusions::WithoutKernelOrWorthIt);
  EXPECT_EQ(cuda->loneFusions(), LoneFusions::ExpensiveElements);
  EXPECT_TRUE(cpu->foldsGelu());
  EXPECT_FALSE(cuda->foldsGelu());
  EXPECT_EQ(cpu->lowProductMultiple(), 1);
  EXPECT_EQ(cuda->lowProductMultiple(), 8);
  EXPECT_FALSE(cpu->packsAttention());
  EXPECT_TRUE(cuda->packsAttention());
  EXPECT_FALSE(cpu->foldsRelu());
  EXPECT_TRUE(cuda->foldsRelu());
}

/// A GPU of compute capability 12.0, as CudaDevice::Open gives one.
class LaterGpu : public runtime::Device {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string_view arch() const override { return "sm_120"; }
  absl::StatusOr<runtime::InstructionPlan> Plan(const runtime::Program&, const runtime::Instruction&,
                                                const runtime::PlanOptions&) const override {
    return absl::UnimplementedError("it plans nothing");
  }
  bool MayAlias(std::string_view, std::size_t, std::size_t) const override { return false; }
  absl::StatusOr<std::unique_ptr<runtime::Executable>> Load(std::shared_ptr<const runtime::Program>,
                                                            const runtime::StateStore&,
                                                            const runtime::LoadOptions&) const override {
    return absl::UnimplementedError("it runs nothing");
  }
};

TEST_F(Targets, BehindHopperTakeItsCode) {
  llvm::Expected<codegen::CodeTarget> target = compiler::codeTargetOf(LaterGpu());
  ASSERT_TRUE(static_cast<bool>(target)) << llvm::toString(target.takeError());
  EXPECT_EQ(target->cpu, "sm_90");
  EXPECT_EQ(target->shared_bytes, 100u << 10);
}

TEST_F(Targets, WantSmallNarrowConvolutionsChannelsLastOnTheCpuAlone) {
  const auto cpu = ModelOf("\"cpu\""), cuda = ModelOf("\"cuda\"");
  ASSERT_TRUE(cpu && cuda);
  mlir::OwningOpRef<mlir::ModuleOp> images = ParseModule(*context_, R"(
      func.func @f(%x: tensor<2x6x8x8xf16>, %w: tensor<16x6x3x3xf16>, %v: tensor<16x16x3x3xf16>)
          -> tensor<2x16x4x4xf16> {
        %y = mpc.conv2d %x, %w : (tensor<2x6x8x8xf16>, tensor<16x6x3x3xf16>) -> tensor<2x16x6x6xf16>
        %z = mpc.conv2d %y, %v : (tensor<2x16x6x6xf16>, tensor<16x16x3x3xf16>) -> tensor<2x16x4x4xf16>
        return %z : tensor<2x16x4x4xf16>
      })");
  ASSERT_TRUE(images);
  std::vector<bool> on_cpu, on_cuda;
  images->walk([&](Conv2dOp op) {
    on_cpu.push_back(cpu->prefersChannelsLast(op));
    on_cuda.push_back(cuda->prefersChannelsLast(op));
  });
  EXPECT_EQ(on_cpu, (std::vector<bool>{true, true}));
  EXPECT_EQ(on_cuda, (std::vector<bool>{false, true}));
}

TEST_F(Targets, SayWhichLowTypeIsNative) {
  const auto cpu = ModelOf("\"cpu\""), cuda = ModelOf("\"cuda\"");
  ASSERT_TRUE(cpu && cuda);
  EXPECT_EQ(cpu->nativeLowType(), runtime::HasAvx512Bf16() ? DType::kBF16 : DType::kF16);
  EXPECT_EQ(cuda->nativeLowType(), DType::kBF16);
}

TEST_F(Targets, AreRefusedByNameAndArchitecture) {
  EXPECT_EQ(ErrorOf("\"tpu\""), "unknown target 'tpu'; choose cpu or cuda");
  EXPECT_THAT(ErrorOf("\"cpu\", arch = \"sm_90\""), HasSubstr("sm_90"));
}

TEST_F(Targets, AreMissingInAContextWithoutThem) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<MpcDialect, mlir::func::FuncDialect>();
  std::string error;
  mlir::ScopedDiagnosticHandler collect(&context, [&](mlir::Diagnostic& diagnostic) {
    error = diagnostic.str();
    return mlir::success();
  });
  const auto module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  mlir::OwningOpRef<mlir::ModuleOp> owner(module);
  EXPECT_TRUE(mlir::failed(targetModelOf(module)));
  EXPECT_EQ(error, "no targets are registered in this context");
}

TEST_F(Targets, KnowKernelsOfInstructionsAlone) {
  const auto model = ModelOf("\"cpu\"", R"(
    %0 = mpc.relu %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = mpc.reshape %0 {shape = array<i64: 8, 16>} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %dead = mpc.reduce_sum %1 {axes = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
    %2 = func.call @f(%1) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    return %2 : tensor<8x16xf32>)");
  ASSERT_TRUE(model);
  (*module_)->walk([&](mlir::Operation* op) {
    EXPECT_GE(model->kernelPlan(op).workspaceBytes, 0);
    EXPECT_FALSE(model->kernelPlan(op).packing.has_value());
    if (op->getNumResults() == 1 && op->getNumOperands() == 1) {
      const bool aliases = mlir::isa<ReluOp, ReshapeOp>(op);
      EXPECT_EQ(model->aliasing(op)(0, 0), aliases) << op->getName().getStringRef().str();
    }
  });
}

// What the target says of a convolution's weight is what lowering packs and plans.
TEST_F(Targets, KnowHowKernelsWantTheirWeights) {
  for (const bool updates : {true, false}) {
    const std::string new_value = updates ? R"( {mpc.state = #mpc.state<parameter, "w">})" : "";
    const std::string text = R"(
func.func @step(%x: tensor<2x9x7x24xf32>, %w: tensor<24x24x3x3xf32> {mpc.state = #mpc.state<parameter, "w">})
    -> (tensor<2x9x7x24xf32>, tensor<24x24x3x3xf32>)" +
                             new_value + R"() attributes {mpc.step} {
  %y = mpc.conv2d %x, %w {data_format = "NHWC", pad_mode = "same"} : (tensor<2x9x7x24xf32>, tensor<24x24x3x3xf32>)
      -> tensor<2x9x7x24xf32>
  %n = mpc.neg %w : tensor<24x24x3x3xf32>
  return %y, %n : tensor<2x9x7x24xf32>, tensor<24x24x3x3xf32>
})";
    const std::unique_ptr<mlir::MLIRContext> context = MakeContext();
    mlir::OwningOpRef<mlir::ModuleOp> module = ParseModule(*context, text);
    ASSERT_TRUE(module);
    auto function = module->lookupSymbol<mlir::func::FuncOp>("step");
    mlir::Operation* convolution = *function.getOps<Conv2dOp>().begin();
    llvm::FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(function);
    ASSERT_TRUE(mlir::succeeded(target));
    const KernelPlan plan = (*target)->kernelPlan(convolution);
    ASSERT_TRUE(plan.packing.has_value());

    const absl::StatusOr<runtime::Program> program = compiler::lowerToProgram(function, **runtime::GetDevice("cpu"));
    ASSERT_TRUE(program.ok()) << program.status();
    const auto& instructions = program->step().instructions;
    const runtime::Instruction& pack = updates ? instructions[0] : program->refreshes.at(0).instruction;
    ASSERT_EQ(pack.kernel, kPackWeight);
    EXPECT_EQ(program->values[pack.outputs[0]].spec, plan.packing->packed);
    EXPECT_EQ(plan.packedBytes(), static_cast<std::int64_t>(plan.packing->packed.bytes()));
    const runtime::Instruction& reader = instructions[updates ? 1 : 0];
    EXPECT_EQ(static_cast<std::size_t>(plan.workspaceBytes), std::max(pack.workspace_bytes, reader.workspace_bytes));
    // The packed weight of a step that updates it lies in the arena.
    const auto scratch = [&](mlir::Operation* op) -> std::int64_t {
      return op == convolution ? plan.workspaceBytes + (updates ? plan.packedBytes() : 0) : 0;
    };
    EXPECT_GE((*target)->arenaBytes(function, scratch, SIZE_MAX), program->arena_bytes);
  }
}

// Of the order that a function has: %0 dies before %2 is made, or lives beside it.
TEST_F(Targets, PlanTheArenaOfAnOrder) {
  const auto model = ModelOf("\"cpu\"", R"(
    %0 = mpc.reduce_sum %x {axes = array<i64: 0>} : (tensor<8x16xf32>) -> tensor<16xf32>
    %1 = mpc.broadcast_to %0 {shape = array<i64: 8, 16>} : (tensor<16xf32>) -> tensor<8x16xf32>
    return %1 : tensor<8x16xf32>)");
  ASSERT_TRUE(model);
  mlir::func::FuncOp function = *module_->getOps<mlir::func::FuncOp>().begin();
  const auto none = [](mlir::Operation*) -> std::int64_t { return 0; };
  const std::size_t bytes = model->arenaBytes(function, none, SIZE_MAX);
  EXPECT_GE(bytes, 8 * 16 * 4 + 16 * 4u);
  EXPECT_GT(model->arenaBytes(
                function, [](mlir::Operation*) -> std::int64_t { return 1 << 20; }, SIZE_MAX),
            bytes);
  EXPECT_GT(model->arenaBytes(function, none, bytes - 1), bytes - 1);
}

}  // namespace
}  // namespace mpc
