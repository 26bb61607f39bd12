// Recompute() and memory budgets change where values come from, never the values.
#include <cstdlib>

#include "compiler/report/memory_table.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

/// [N, 2, 6, 6] -> [N, 4, 6, 6]: what a residual block does, with dropout.
class Block : public nn::Cell {
 public:
  explicit Block(std::int64_t channels) : in_channels(channels), conv(channels, 4, 3), second(4, 4, 3) {}
  MPC_CELL(Block, conv, norm, drop, second, second_norm)
  Tensor Construct(Tensor x) {
    const Tensor y = drop(relu(norm(conv(x))));
    const Tensor z = second_norm(second(y));
    return relu(in_channels == 4 ? z + x : z);
  }
  std::int64_t in_channels;
  nn::Conv2d conv;
  nn::BatchNorm2d norm{4};
  nn::Dropout drop{{.p = 0.25}};
  nn::Conv2d second;
  nn::BatchNorm2d second_norm{4};
};

/// [N, 2, 6, 6] -> [N, 3].
class Blocks : public nn::Cell {
 public:
  MPC_CELL(Blocks, first, next, last, fc)
  Tensor Construct(Tensor x) { return fc(flatten(last(next(first(x))))); }
  Block first{2}, next{4}, last{4};
  nn::Dense fc{144, 3};
};

struct Outcome {
  std::vector<float> losses;
  Snapshot state;
  std::size_t arena = 0;
  std::size_t planned = 0;
  std::int64_t forward_bytes = 0;  ///< kept for the backward pass at the peak
  std::vector<std::string> remarks;
};

Outcome Finish(Model& model, LossRecorder& recorder) {
  Outcome run{recorder.losses, StateOf(model), 0, 0, 0, {}};
  for (const compiler::CompileResult* compiled : model.compiled()) {
    if (compiled->program.name != "train_step") continue;
    run.arena = compiled->program.arena_bytes;
    run.planned = compiled->program.planned_bytes();
    run.remarks = compiled->remarks;
    const absl::StatusOr<compiler::MemoryTable> table = compiler::TabulateMemory(compiled->program, compiled->final_ir);
    EXPECT_TRUE(table.ok()) << table.status();
    if (table.ok()) run.forward_bytes = table->bytes(compiler::StorageUse::Forward);
  }
  return run;
}

Outcome Train(const Level& level, const std::function<void(Blocks&)>& mark) {
  Training<Blocks> training(level, FixedLossScaleManager({.loss_scale = 64}));
  mark(*training.network);
  auto recorder = std::make_shared<LossRecorder>();
  MPC_EXPECT_OK(training.model->Train(2, GoodBatches({2, 6, 6}, 4, 32), {recorder}));
  return Finish(*training.model, *recorder);
}

void MarkBlocks(Blocks& network) {
  network.first.Recompute();
  network.next.Recompute();
  network.last.Recompute();
}

class RecomputeAtLevel : public ::testing::TestWithParam<Level> {};

TEST_P(RecomputeAtLevel, LossesParametersAndStateAreTheSameBits) {
  for (const bool fusion : {false, true}) {
    MPC_ASSERT_OK(SetContext({.fusion = fusion}));
    const Outcome plain = Train(GetParam(), [](Blocks&) {});
    const Outcome marked = Train(GetParam(), MarkBlocks);
    EXPECT_EQ(plain.losses, marked.losses);
    EXPECT_EQ(Differences(plain.state, marked.state), std::vector<std::string>{}) << "fusion " << fusion;
    EXPECT_LT(marked.arena, plain.arena) << "fusion " << fusion;
  }
  MPC_ASSERT_OK(SetContext({}));
}

INSTANTIATE_TEST_SUITE_P(Levels, RecomputeAtLevel, ::testing::ValuesIn(AllLevels()), LevelName);

TEST(Recompute, TheReportSaysWhatIsComputedAgain) {
  const Outcome marked = Train({"O0", {}}, MarkBlocks);
  for (const char* cell : {"blocks/first: ", "blocks/next: ", "blocks/last: "}) {
    const auto says = [&](const std::string& remark) {
      return remark.find(std::string("recompute: ") + cell) != std::string::npos &&
             remark.find("run again in the backward pass") != std::string::npos;
    };
    EXPECT_EQ(std::count_if(marked.remarks.begin(), marked.remarks.end(), says), 1) << cell;
  }
}

TEST(Recompute, TheOutermostCellDecides) {
  const Outcome outer = Train({"O0", {}}, [](Blocks& network) { network.Recompute(); });
  const Outcome both = Train({"O0", {}}, [](Blocks& network) {
    network.Recompute();
    MarkBlocks(network);
  });
  EXPECT_EQ(outer.arena, both.arena);
  EXPECT_EQ(outer.remarks, both.remarks);
}

TEST(Recompute, IsTakenBack) {
  const Outcome plain = Train({"O0", {}}, [](Blocks&) {});
  const Outcome back = Train({"O0", {}}, [](Blocks& network) {
    MarkBlocks(network);
    for (Block* block : {&network.first, &network.next, &network.last}) block->Recompute(false);
  });
  EXPECT_EQ(plain.arena, back.arena);
}

TEST(Recompute, MarkingACellCompilesItsModelAnew) {
  Training<Blocks> training({"O0", {}});
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches({2, 6, 6}, 1, 32)));
  MarkBlocks(*training.network);
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches({2, 6, 6}, 1, 32)));
  std::vector<std::size_t> arenas;
  for (const compiler::CompileResult* compiled : training.model->compiled()) {
    if (compiled->program.name == "train_step") arenas.push_back(compiled->program.arena_bytes);
  }
  ASSERT_EQ(arenas.size(), 2u);
  EXPECT_NE(arenas[0], arenas[1]);
}

//===-- Budgets ----------------------------------------------------------------------------------------------===//

class BudgetAtLevel : public ::testing::TestWithParam<Level> {
 protected:
  ~BudgetAtLevel() override { EXPECT_TRUE(SetContext({}).ok()); }
};

TEST_P(BudgetAtLevel, APlanWithinItTrainsToTheSameBits) {
  const Outcome plain = Train(GetParam(), [](Blocks&) {});
  // Below the plan, above what the network cannot do without: inputs, state, one block.
  const std::size_t budget = plain.planned - plain.arena / 10;
  MPC_ASSERT_OK(SetContext({.memory_budget = static_cast<std::int64_t>(budget)}));
  const Outcome fitted = Train(GetParam(), [](Blocks&) {});
  EXPECT_LE(fitted.planned, budget);
  EXPECT_EQ(plain.losses, fitted.losses);
  EXPECT_EQ(Differences(plain.state, fitted.state), std::vector<std::string>{});
}

TEST_P(BudgetAtLevel, WhatFitsAlreadyStaysAsItIs) {
  const Outcome plain = Train(GetParam(), [](Blocks&) {});
  MPC_ASSERT_OK(SetContext({.memory_budget = static_cast<std::int64_t>(plain.planned)}));
  const Outcome fitted = Train(GetParam(), [](Blocks&) {});
  EXPECT_EQ(plain.arena, fitted.arena);
  EXPECT_EQ(plain.remarks, fitted.remarks);
}

INSTANTIATE_TEST_SUITE_P(Levels, BudgetAtLevel,
                         ::testing::Values(Level{"O0", {}}, Level{"O2", DType::kF16}, Level{"O2", DType::kBF16}),
                         LevelName);

/// While it lives, generated code is kept nowhere.
class NoCodeCache {
 public:
  NoCodeCache() : before_(std::getenv("MPC_CACHE_DIR") == nullptr ? "" : std::getenv("MPC_CACHE_DIR")) {
    ::setenv("MPC_CACHE_DIR", "off", 1);
  }
  ~NoCodeCache() { ::setenv("MPC_CACHE_DIR", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST(Budget, MakesCodeForThePlanThatFitsAlone) {
  const NoCodeCache no_cache;
  const Outcome plain = Train({"O0", {}}, [](Blocks&) {});
  const std::size_t budget = plain.planned - plain.arena / 10;
  MPC_ASSERT_OK(SetContext({.fusion = true, .memory_budget = static_cast<std::int64_t>(budget)}));
  Training<Blocks> training({"O0", {}});
  MPC_EXPECT_OK(training.model->Train(1, GoodBatches({2, 6, 6}, 1, 32)));
  MPC_ASSERT_OK(SetContext({}));
  for (const compiler::CompileResult* compiled : training.model->compiled()) {
    if (compiled->program.name != "train_step") continue;
    EXPECT_GT(compiled->plans, 2u);
    EXPECT_GT(compiled->code.distinct, 0u);
    EXPECT_EQ(compiled->code.assembled, compiled->code.distinct);
    EXPECT_EQ(std::count_if(compiled->phases.begin(), compiled->phases.end(),
                            [](const compiler::PhaseTime& phase) { return phase.name == "code generation"; }),
              1);
  }
}

/// Blocks beside a table of 256 KiB that nothing reads: its gradient is a constant, which the finite check reads.
class BlocksAndTable : public nn::Cell {
 public:
  MPC_CELL(BlocksAndTable, blocks, table)
  Tensor Construct(Tensor x) { return blocks(x); }
  Blocks blocks;
  nn::Embedding table{256, 256};
};

const runtime::Program& TrainStepOf(const Model& model) {
  for (const compiler::CompileResult* compiled : model.compiled()) {
    if (compiled->program.name == "train_step") return compiled->program;
  }
  ADD_FAILURE() << "no training step was compiled";
  return model.compiled().front()->program;
}

TEST(Budget, CountsConstants) {
  const auto compile = [](std::size_t budget) {
    EXPECT_TRUE(SetContext({.memory_budget = static_cast<std::int64_t>(budget)}).ok());
    Training<BlocksAndTable> training({"O0", {}}, FixedLossScaleManager({.loss_scale = 64}));
    MPC_EXPECT_OK(training.model->Train(1, GoodBatches({2, 6, 6}, 1, 32)));
    EXPECT_TRUE(SetContext({}).ok());
    return TrainStepOf(*training.model);
  };
  const runtime::Program plain = compile(0);
  EXPECT_LT(plain.constants.size(), 1024u);
  EXPECT_GE(plain.constant_bytes(), 256u * 256 * 4);
  // Arena and state alone would fit.
  const std::size_t budget = plain.planned_bytes() - 64;
  ASSERT_LT(plain.arena_bytes + plain.state_bytes(), budget);
  const runtime::Program fitted = compile(budget);
  EXPECT_LE(fitted.planned_bytes(), budget);
  EXPECT_LT(fitted.arena_bytes, plain.arena_bytes);
}

TEST(Budget, ThatCannotBeMetIsAnErrorWithTheSmallestPlanAndItsPeak) {
  MPC_ASSERT_OK(SetContext({.memory_budget = 1024}));
  Training<Blocks> training({"O0", {}});
  const absl::Status status = training.model->Train(1, GoodBatches({2, 6, 6}, 1, 32));
  MPC_ASSERT_OK(SetContext({}));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  for (const char* part : {"memory budget 1.0 KiB (1024 bytes) cannot be met", "the smallest plan takes",
                           "its peak lies at", "the largest buffer there"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << part << ": " << status;
  }
}

TEST(Budget, MustNotBeNegative) {
  const absl::Status status = SetContext({.memory_budget = -1});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("got -1"), std::string::npos) << status;
}

}  // namespace
}  // namespace mpc::testing
