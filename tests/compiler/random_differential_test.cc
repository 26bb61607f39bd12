// What passes make of random training steps, against the interpreter and against the kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/module/module_impl.h"
#include "mlir/Pass/PassManager.h"
#include "passes/fusion/unfuse.h"
#include "passes/passes.h"
#include "tests/compiler/cpu_operation_device.h"
#include "tests/compiler/operation_case.h"
#include "tests/compiler/random_graph.h"
#include "tests/compiler/random_step.h"
#include "tests/cuda/emulated_kernel_device.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

using mlir::func::FuncOp;
using reference::Tensor;

constexpr std::uint64_t kGraphs = 500;

/// The step with a cast before every operand that asks for one, and its derivative: nothing moved, folded or merged.
mlir::LogicalResult RunNaively(mlir::ModuleOp module, const Setting& setting) {
  mlir::PassManager manager(module.getContext());
  AmpPassOptions options;
  options.level = setting.level;
  options.dtype = setting.dtype;
  manager.addPass(createAmpPass(options));
  manager.addPass(createAutodiffPass());
  return manager.run(module);
}

/// What pipelines do where fusion follows.
mlir::LogicalResult ReadLessBackward(mlir::ModuleOp module) {
  mlir::PassManager manager(module.getContext());
  manager.addNestedPass<FuncOp>(createRenormalizePass());
  manager.addNestedPass<FuncOp>(createReluMaskPass());
  return manager.run(module);
}

/// Derivatives of relu that choose by a mask.
std::int64_t CountMasks(compiler::Module& module) {
  std::int64_t masks = 0;
  module.impl().module->walk(
      [&](WhereOp where) { masks += isMarkedBackward(where) && where.getCondition().getDefiningOp<GreaterOp>(); });
  return masks;
}

std::int64_t CountCasts(compiler::Module& module) {
  std::int64_t casts = 0;
  module.impl().module->walk([&](CastOp) { ++casts; });
  return casts;
}

// Moving, merging and folding casts, shadows, the layout of images, masks for relu and images that are normalised again
// change no bit of any result: casts move only where the contract says that nothing changes, and each operation keeps
// its one rounding.
TEST(RandomGraphs, PassesKeepTheBitsOfNaiveCasts) {
  std::int64_t finite_losses = 0, casts_before = 0, casts_after = 0, masks = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Setting setting = SettingOf(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + " at " + setting.level + " " + setting.dtype);
    const compiler::Module traced = MakeRandomGraph(seed);
    compiler::Module naive = traced.Clone(), optimised = traced.Clone();
    mlir::ScopedDiagnosticHandler quiet(naive.impl().context.get(), [](mlir::Diagnostic& diagnostic) {
      return mlir::success(diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error);
    });
    ASSERT_TRUE(mlir::succeeded(RunNaively(*naive.impl().module, setting)));
    ASSERT_TRUE(
        mlir::succeeded(RunPipeline(*optimised.impl().module, setting, /*layout=*/seed % 2 == 0, /*fusion=*/false)));
    ASSERT_TRUE(mlir::succeeded(ReadLessBackward(*optimised.impl().module)));
    const std::map<std::string, Tensor> expected = Results(naive), actual = Results(optimised);
    ASSERT_FALSE(expected.empty());
    finite_losses += std::isfinite(expected.at("loss").values[0]);
    casts_before += CountCasts(naive);
    casts_after += CountCasts(optimised);
    masks += CountMasks(optimised);
    for (const auto& [name, value] : expected) {
      ASSERT_TRUE(actual.contains(name)) << name;
      ASSERT_TRUE(SameBits(value, actual.at(name))) << name << "\n" << traced.Print() << optimised.Print();
    }
  }
  // The comparison says something: results are numbers and the passes did remove casts.
  EXPECT_GT(finite_losses, kGraphs * 9 / 10);
  EXPECT_LT(casts_after, casts_before);
  EXPECT_GT(masks, kGraphs / 10);
}

void ExpectKernelMatches(const KernelDevice& device, mlir::Operation& op, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& exact) {
  const auto bits = RunKernel(device, CaseOf(op), DType::kF32, inputs);
  ASSERT_TRUE(bits.ok()) << bits.status();
  std::vector<Tensor> results;
  for (std::size_t r = 0; r < exact.size(); ++r) {
    results.push_back(reference::FromStorage(exact[r].spec, (*bits)[r].data()));
  }
  std::vector<const Tensor*> actual;
  for (const Tensor& result : results) actual.push_back(&result);
  ExpectWithinBounds(op, inputs, exact, actual);
}

// Every operation that the passes wrote, with the types they gave it and the values that reach it: what each device
// computes is within the bound derived for that operation.
TEST(RandomGraphs, KernelsMatchTheReferenceOnWhatPassesWrite) {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Setting setting = SettingOf(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + " at " + setting.level + " " + setting.dtype);
    compiler::Module module = MakeRandomGraph(seed);
    mlir::ScopedDiagnosticHandler quiet(module.impl().context.get(), [](mlir::Diagnostic& diagnostic) {
      return mlir::success(diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error);
    });
    ASSERT_TRUE(mlir::succeeded(RunPipeline(*module.impl().module, setting, /*layout=*/true, /*fusion=*/false)));
    FuncOp step = StepOf(module);
    // What has no kernel written by hand is a region of its own.
    step->walk([](FusionOp fusion) { unfuse(fusion); });
    llvm::DenseMap<mlir::Value, Tensor> values;
    for (mlir::BlockArgument argument : step.getArguments()) {
      values[argument] = ArgumentValue(step, argument.getArgNumber());
    }
    for (mlir::Operation& op : step.getBody().front().without_terminator()) {
      std::vector<Tensor> inputs;
      for (mlir::Value operand : op.getOperands()) inputs.push_back(values.at(operand));
      std::vector<Tensor> exact = ExactResults(op, inputs);
      if (!mlir::isa<ConstantOp>(op)) {
        for (const KernelDevice* device : {&CpuOperations(), &EmulatedKernels()}) {
          SCOPED_TRACE(device == &CpuOperations() ? "on the CPU" : "on CUDA, emulated");
          ExpectKernelMatches(*device, op, inputs, exact);
        }
      }
      for (std::size_t r = 0; r < exact.size(); ++r) {
        for (double& value : exact[r].values) value = reference::RoundTo(exact[r].spec.dtype, value);
        values[op.getResult(r)] = exact[r];
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace mpc::test
