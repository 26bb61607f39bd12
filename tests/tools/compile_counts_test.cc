// What compiling the shipped models takes, in counts that do not depend on the machine: how many merges fusion judges,
// how many regions code is generated for, how many LLVM instructions are emitted, how many plans a budget takes. A
// ceiling that is passed says that compiling has become slower. Raise it with the reason in the commit.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/code_generator.h"
#include "compiler/dialect/dialect.h"
#include "compiler/driver/compiler.h"
#include "compiler/module/module_impl.h"
#include "mlir/Parser/Parser.h"
#include "passes/fusion/fusion_groups.h"
#include "tools/mpc-opt/model_source.h"

namespace mpc {
namespace {

struct Ceilings {
  const char* model;
  unsigned trials;        ///< pairs of groups that fusion judges
  unsigned regions;       ///< distinct ones
  unsigned instructions;  ///< emitted for sm_90, before they are optimised
};

void PrintTo(const Ceilings& ceilings, std::ostream* out) { *out << ceilings.model; }

/// The training step of a model at O2 on samples of 8.
opt::ModelSource Trace(const char* model) {
  opt::ModelRequest request;
  request.model = model;
  request.train = true;
  request.batch = 8;
  request.amp.level = "O2";
  request.amp.verbosity = 0;
  absl::StatusOr<opt::ModelSource> source = opt::TraceModel(request);
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

class CompileCounts : public ::testing::TestWithParam<Ceilings> {
 protected:
  /// The step behind all passes, for a GPU.
  static mlir::func::FuncOp Final(opt::ModelSource& step, bool fusion) {
    step.options.device = "cuda";
    step.options.arch = "sm_90";
    step.options.fusion = fusion;
    const absl::Status status = compiler::RunPasses(step.traced, step.options, "final", nullptr, nullptr);
    EXPECT_TRUE(status.ok()) << status;
    return step.traced.impl().module->lookupSymbol<mlir::func::FuncOp>(step.options.function);
  }
};

TEST_P(CompileCounts, FusionJudgesFewMerges) {
  opt::ModelSource step = Trace(GetParam().model);
  mlir::func::FuncOp function = Final(step, /*fusion=*/false);
  ASSERT_TRUE(function);
  const FusionGroups groups(function.getBody().front(), {.bytesPerLaunch = 7'500'000});
  EXPECT_LE(groups.numTrials(), GetParam().trials);
  EXPECT_GT(groups.numTrials(), 0u);
}

TEST_P(CompileCounts, FewRegionsAndInstructionsAreGenerated) {
  opt::ModelSource step = Trace(GetParam().model);
  mlir::func::FuncOp function = Final(step, /*fusion=*/true);
  ASSERT_TRUE(function);
  auto target = codegen::gpuTarget("sm_90");
  ASSERT_TRUE(static_cast<bool>(target));
  codegen::CodeGenerator generator(*target, {/*cache_dir=*/"", /*threads=*/1});
  auto code = generator.plan(function);
  ASSERT_TRUE(static_cast<bool>(code));
  EXPECT_LE(code->statistics.distinct, GetParam().regions);
  EXPECT_LE(code->statistics.instructions, GetParam().instructions);
  EXPECT_GT(code->statistics.instructions, 0u);
}

INSTANTIATE_TEST_SUITE_P(Models, CompileCounts,
                         ::testing::Values(Ceilings{"bnnet", 24, 3, 1300}, Ceilings{"resnet18-cifar", 300, 24, 15000},
                                           Ceilings{"gpt2-tiny", 120, 6, 3700}),
                         [](const auto& info) {
                           std::string name = info.param.model;
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

/// What choosing regions takes.
struct FusionWork {
  unsigned trials;       ///< pairs of groups judged
  unsigned choices;      ///< proposals taken up or put away
  std::uint64_t visits;  ///< groups looked at for ways out of a region and back
};

/// Of a sum of sigmoids of one tensor times constants, as in a mixture.
FusionWork WorkOfTerms(int terms) {
  std::string text = "func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {\n";
  std::string sum = "%x";
  for (int i = 0; i < terms; ++i) {
    absl::StrAppend(&text, "%m", i, " = mpc.mul_scalar %x {value = ", i, ".5} : tensor<4x8xf32>\n", "%y", i,
                    " = mpc.sigmoid %m", i, " : tensor<4x8xf32>\n", "%s", i, " = mpc.add ", sum, ", %y", i,
                    " : tensor<4x8xf32>\n");
    sum = absl::StrCat("%s", i);
  }
  absl::StrAppend(&text, "return ", sum, " : tensor<4x8xf32>\n}\n");
  mlir::MLIRContext context;
  context.loadDialect<MpcDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  if (!module) return {};
  const FusionGroups groups(module->lookupSymbol<mlir::func::FuncOp>("f").getBody().front(),
                            {.bytesPerLaunch = 7'500'000});
  return {groups.numTrials(), groups.numChoices(), groups.getGroups().numVisits()};
}

// Where many operations read one tensor, each is judged with a few of the others.
TEST(FusionGroups, JudgesMergesInNumbersLinearInReadersOfATensor) {
  const FusionWork few = WorkOfTerms(100);
  const FusionWork many = WorkOfTerms(400);
  EXPECT_GT(few.trials, 0u);
  EXPECT_LE(many.trials, 5 * few.trials);
  EXPECT_GT(few.choices, 0u);
  EXPECT_LE(many.choices, 5 * few.choices);
  EXPECT_GT(few.visits, 0u);
  EXPECT_LE(many.visits, 5 * few.visits);
}

// Of the state and 90 % of the arena on the CPU, whose workspaces depend on the processor.
TEST(Budget, TakesFewPlans) {
  opt::ModelSource step = Trace("gpt2-tiny");
  step.options.cache_dir = "off";
  const absl::StatusOr<compiler::CompileResult> free = compiler::Compile(step.traced, step.options);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_EQ(free->plans, 1u);
  step.options.memory_budget =
      static_cast<std::int64_t>(free->program.planned_bytes() - free->program.arena_bytes / 10);
  const absl::StatusOr<compiler::CompileResult> within = compiler::Compile(step.traced, step.options);
  ASSERT_TRUE(within.ok()) << within.status();
  EXPECT_GT(within->plans, 1u);
  EXPECT_LE(within->plans, 8u);
}

}  // namespace
}  // namespace mpc
