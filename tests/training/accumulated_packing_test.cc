// Accumulated steps pack a weight when an update has changed it. They train to the bits of steps that pack it in every
// batch.
#include <gmock/gmock.h>

#include <memory>

#include "runtime/packed_weights.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/probe.h"

namespace mpc::testing {
namespace {

/// [N, 3, 8, 8] -> [N, 3]. Each weight but the first is one that the library wants packed; one has two readers.
class TiedConvolutions : public nn::Cell {
 public:
  MPC_CELL(TiedConvolutions, first, second, frozen, fc)
  TiedConvolutions() { frozen.weight.set_requires_grad(false); }
  Tensor Construct(Tensor x) {
    return fc(reduce_mean(relu(frozen(relu(second(relu(second(relu(first(x)))))))), {2, 3}));
  }
  nn::Conv2d first{3, 32, 3};
  nn::Conv2d second{32, 32, 3};
  nn::Conv2d frozen{32, 32, 3};
  nn::Dense fc{32, 3};
};

using MakeOptimizer = std::unique_ptr<nn::Optimizer> (*)(const std::vector<Parameter>&);

struct NamedOptimizer {
  const char* name;
  MakeOptimizer make;
};

const NamedOptimizer kOptimizers[] = {
    {"SGD",
     [](const std::vector<Parameter>& weights) -> std::unique_ptr<nn::Optimizer> {
       return std::make_unique<nn::SGD>(weights, nn::SGDOptions{.learning_rate = 0.1});
     }},
    {"Momentum",
     [](const std::vector<Parameter>& weights) -> std::unique_ptr<nn::Optimizer> {
       return std::make_unique<nn::Momentum>(weights, nn::MomentumOptions{.learning_rate = 0.1});
     }},
    {"Adam",
     [](const std::vector<Parameter>& weights) -> std::unique_ptr<nn::Optimizer> {
       return std::make_unique<nn::Adam>(weights, nn::AdamOptions{.learning_rate = 0.01});
     }},
    {"AdamW",
     [](const std::vector<Parameter>& weights) -> std::unique_ptr<nn::Optimizer> {
       return std::make_unique<nn::AdamW>(weights, nn::AdamWOptions{.learning_rate = 0.01});
     }},
    {"Lamb",
     [](const std::vector<Parameter>& weights) -> std::unique_ptr<nn::Optimizer> {
       return std::make_unique<nn::Lamb>(weights, nn::LambOptions{.learning_rate = 0.01});
     }},
    {"RMSProp",
     [](const std::vector<Parameter>& weights) -> std::unique_ptr<nn::Optimizer> {
       return std::make_unique<nn::RMSProp>(weights, nn::RMSPropOptions{.learning_rate = 0.01});
     }},
};

constexpr std::int64_t kAmpleBudget = std::int64_t{1} << 40;

/// A Model on two threads or one. With a memory budget its steps pack weights in every batch.
struct Accumulated {
  Accumulated(const Level& level, const NamedOptimizer& of, std::int64_t steps = 2, std::int64_t budget = 0,
              int threads = 2)
      : context{.num_threads = threads, .memory_budget = budget} {
    MPC_EXPECT_OK(SetContext(context));
    SetSeed(7);
    network = std::make_unique<TiedConvolutions>();
    optimizer = of.make(network->TrainableParams());
    model = std::make_unique<Model>(*network, loss, *optimizer,
                                    ModelOptions{.amp_level = level.level,
                                                 .loss_scale_manager = DynamicScale(16, 2, 0.5, 100),
                                                 .amp_dtype = level.dtype,
                                                 .accumulation_steps = steps});
  }

  void Train(std::vector<data::Row> batches) {
    MPC_EXPECT_OK(SetContext(context));
    MPC_EXPECT_OK(model->Train(1, Batches(std::move(batches))));
  }
  void Train(std::int64_t first, std::int64_t count) {
    std::vector<data::Row> batches;
    for (std::int64_t i = first; i < first + count; ++i) batches.push_back(Batch(i));
    Train(std::move(batches));
  }
  void HalveWeight() {
    std::vector<float> values = network->second.weight.Value()->ToFloats();
    for (float& value : values) value *= 0.5f;
    MPC_EXPECT_OK(network->second.weight.SetData(Tensor::From(values, network->second.weight.shape())));
  }
  static data::Row Batch(std::int64_t index) { return MakeBatch({3, 8, 8}, 4, index); }

  ContextOptions context;
  std::unique_ptr<TiedConvolutions> network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  std::unique_ptr<nn::Optimizer> optimizer;
  std::unique_ptr<Model> model;
};

struct Packings {
  int in_step = 0, kept = 0;
};

/// Of the training steps of `model`.
Packings PackingsOf(const Model& model) {
  Packings packings;
  for (const compiler::CompileResult* compiled : model.compiled()) {
    const runtime::Program& program = compiled->program;
    if (program.name != "train_step") continue;
    for (const auto& instruction : program.step().instructions) packings.in_step += runtime::PacksWeight(instruction);
    for (const auto& refresh : program.refreshes) packings.kept += runtime::PacksWeight(refresh.instruction);
  }
  return packings;
}

std::map<std::string, std::uint64_t> PackedVersions(const Model& model) {
  std::map<std::string, std::uint64_t> versions;
  for (const auto& entry : model.DerivedState()) {
    if (entry->name().starts_with("second") && entry->name().find(".packed.") != std::string::npos) {
      versions[entry->name()] = entry->version();
    }
  }
  return versions;
}

class AccumulatedPacking : public ::testing::TestWithParam<Level> {
 protected:
  void TearDown() override { MPC_EXPECT_OK(SetContext({})); }
};

/// Steps, an evaluation, an overflow, a weight that is set between the batches of a step, and more steps.
Snapshot StateAfterAll(Accumulated& training) {
  training.Train(0, 3);
  MPC_EXPECT_OK(training.model->Predict(Values({4, 3, 8, 8})).status());
  training.Train({Accumulated::Batch(3), WithBadValue(Accumulated::Batch(4), kInfinity), Accumulated::Batch(5)});
  training.Train(6, 1);
  training.HalveWeight();
  training.Train(7, 4);
  return StateOf(*training.model);
}

TEST_P(AccumulatedPacking, ChangesNoBits) {
  for (const NamedOptimizer& optimizer : kOptimizers) {
    SCOPED_TRACE(optimizer.name);
    Accumulated kept(GetParam(), optimizer), alone(GetParam(), optimizer, 2, 0, /*threads=*/1);
    Accumulated packs(GetParam(), optimizer, 2, kAmpleBudget);
    const Snapshot expected = StateAfterAll(packs);
    EXPECT_EQ(Differences(StateAfterAll(kept), expected), std::vector<std::string>{});
    EXPECT_EQ(Differences(StateAfterAll(alone), expected), std::vector<std::string>{});
    EXPECT_EQ(kept.model->skipped_steps(), 1);
  }
}

TEST_P(AccumulatedPacking, IsStateWhereAStepAccumulates) {
  const auto packings = [](const Level& level, std::int64_t steps, std::int64_t budget) {
    Accumulated training(level, kOptimizers[1], steps, budget);
    training.Train(0, 1);
    return PackingsOf(*training.model);
  };
  const Packings kept = packings(GetParam(), 2, 0);
  EXPECT_EQ(kept.in_step, 0);
  EXPECT_GE(kept.kept, 3) << "forward and data gradient of the second weight, and the frozen one";
  const Packings plain = packings(GetParam(), 1, 0);
  EXPECT_GE(plain.in_step, 3) << "every step changes the weight";
  EXPECT_LT(plain.kept, kept.kept);
  const Packings small = packings(GetParam(), 2, kAmpleBudget);
  EXPECT_GT(small.in_step, plain.in_step);
  EXPECT_EQ(small.kept, 0) << "memory is short";
}

TEST_P(AccumulatedPacking, IsDoneOnceAnUpdate) {
  Accumulated training(GetParam(), kOptimizers[1], /*steps=*/3);
  const auto version_after = [&](data::Row batch) {
    training.Train({std::move(batch)});
    return PackedVersions(*training.model);
  };
  const auto first = version_after(Accumulated::Batch(0));
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(version_after(Accumulated::Batch(1)), first);
  EXPECT_EQ(version_after(Accumulated::Batch(2)), first) << "the update is behind the readers";
  const auto second = version_after(WithBadValue(Accumulated::Batch(3), kInfinity));
  EXPECT_NE(second, first);
  version_after(Accumulated::Batch(4));
  version_after(Accumulated::Batch(5));
  EXPECT_EQ(version_after(Accumulated::Batch(6)), second) << "the step before was skipped";
  EXPECT_EQ(training.model->skipped_steps(), 1);
  training.HalveWeight();
  EXPECT_NE(version_after(Accumulated::Batch(7)), second);
}

TEST_P(AccumulatedPacking, FollowsACheckpointBetweenBatches) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint";
  Accumulated kept(GetParam(), kOptimizers[2]), packs(GetParam(), kOptimizers[2], 2, kAmpleBudget);
  for (Accumulated* training : {&kept, &packs}) {
    training->Train(0, 3);
    MPC_ASSERT_OK(training->model->SaveCheckpoint(path));
    training->Train(3, 4);
    MPC_ASSERT_OK(training->model->LoadCheckpoint(path, {.continue_run = false}).status());
    training->Train(7, 3);
  }
  EXPECT_EQ(Differences(StateOf(*kept.model), StateOf(*packs.model)), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Levels, AccumulatedPacking,
                         ::testing::Values(Level{"O0", {}}, Level{"O2", DType::kF16}, Level{"O2", DType::kBF16}),
                         LevelName);

}  // namespace
}  // namespace mpc::testing
