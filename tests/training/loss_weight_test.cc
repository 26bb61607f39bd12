// LossWeight::kElements: an update of micro-batches in which losses leave elements out is that of one whole batch.
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "models/bert.h"
#include "models/gpt2.h"
#include "tests/training/process_group.h"

namespace mpc::testing {
namespace {

constexpr std::int64_t kRowsEach = 8, kFeatures = 6, kClasses = 3, kIgnored = -100;
constexpr int kMicroBatches = 4;
/// How many rows of each micro-batch count.
using Counts = std::array<std::int64_t, kMicroBatches>;
constexpr Counts kUneven = {8, 1, 0, 5};

const AutoParallelOptions kByElements = {.loss_weight = LossWeight::kElements};

std::vector<std::int32_t> Labels(std::int64_t batch, std::int64_t counted) {
  std::vector<std::int32_t> labels(kRowsEach, static_cast<std::int32_t>(kIgnored));
  for (std::int64_t row = 0; row < counted; ++row) {
    labels[static_cast<std::size_t>(row)] = static_cast<std::int32_t>((row + batch) % kClasses);
  }
  return labels;
}

/// Micro-batches of rows [kRowsEach, ...sample], of which the first `counts` have labels.
std::vector<data::Row> MicroBatches(const Shape& sample, const Counts& counts, std::int64_t updates = 1) {
  Shape shape{kRowsEach};
  shape.insert(shape.end(), sample.begin(), sample.end());
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < updates * kMicroBatches; ++i) {
    const std::int64_t counted = counts[static_cast<std::size_t>((i + i / kMicroBatches) % kMicroBatches)];
    batches.push_back({Values(shape, 100 + i), Tensor::From(Labels(i, counted), {kRowsEach})});
  }
  return batches;
}

/// [N, kFeatures] -> [N, kClasses], without a bias. Weights begin at zero, so that softmax is exact.
class Linear : public nn::Cell {
 public:
  MPC_CELL(Linear, weight)
  Tensor Construct(Tensor x) { return matmul(x, weight); }
  Parameter weight{{kFeatures, kClasses}, Constant(0.0)};
};

/// The weights after an update of SGD at rate 1: minus the gradient.
std::vector<float> UpdateOf(const std::vector<data::Row>& batches, int processes, const AutoParallelOptions& options) {
  EXPECT_TRUE(RunGroup(
      processes,
      [&](int rank) {
        Linear network;
        nn::CrossEntropyLoss loss;
        nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1});
        Model model(network, loss, optimizer,
                    {.accumulation_steps = static_cast<std::int64_t>(batches.size()) / processes});
        MPC_EXPECT_OK(model.Train(1, Batches(batches)));
        if (rank == 0) Write(FilePath("weights"), StateOf(model));
      },
      /*killed=*/{}, options));
  const std::vector<std::uint8_t> bytes = Read(FilePath("weights")).at("weight");
  return Tensor::FromBytes({DType::kF32, {kFeatures, kClasses}}, bytes.data(), bytes.size()).ToFloats();
}

/// The gradient of the mean over all rows that count, and the sum of its terms' sizes. With weights of zero every class
/// has the probability 1/3.
struct Reference {
  std::vector<double> gradient = std::vector<double>(kFeatures * kClasses, 0.0);
  std::vector<double> size = std::vector<double>(kFeatures * kClasses, 0.0);
};

Reference ReferenceOf(const std::vector<data::Row>& batches) {
  Reference reference;
  double counted = 0;
  for (const data::Row& batch : batches) {
    const std::vector<float> x = batch[0].ToFloats();
    const std::vector<float> labels = batch[1].To(DType::kF32).ToFloats();
    for (std::size_t row = 0; row < labels.size(); ++row) {
      if (labels[row] == kIgnored) continue;
      ++counted;
      for (std::size_t i = 0; i < kFeatures * kClasses; ++i) {
        const double error = 1.0 / kClasses - (labels[row] == static_cast<float>(i % kClasses) ? 1 : 0);
        const double term = static_cast<double>(x[row * kFeatures + i / kClasses]) * error;
        reference.gradient[i] += term;
        reference.size[i] += std::abs(term);
      }
    }
  }
  for (std::size_t i = 0; i < reference.gradient.size(); ++i) {
    reference.gradient[i] /= counted;
    reference.size[i] /= counted;
  }
  return reference;
}

/// Each term is rounded in softmax, in its product and in at most 8 sums of its batch. The loss divides it, the weight
/// multiplies it, 3 sums add micro-batches, and the mean of weights, rounded 5 times itself, divides it: 24 in all.
constexpr double kBound = 24 * 0x1p-24;

void ExpectGradient(const std::vector<float>& weights, const Reference& reference) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_NEAR(-weights[i], reference.gradient[i], kBound * reference.size[i]) << i;
  }
}

TEST(LossWeight, HasTheGradientOfOneWholeBatch) {
  const std::vector<data::Row> batches = MicroBatches({kFeatures}, kUneven);
  const Reference reference = ReferenceOf(batches);
  const std::vector<float> alone = UpdateOf(batches, 1, kByElements);
  ExpectGradient(alone, reference);
  for (const int processes : {2, 4}) EXPECT_EQ(UpdateOf(batches, processes, kByElements), alone) << processes;
  // A mean of means is something else.
  const std::vector<data::Row> some = MicroBatches({kFeatures}, {8, 1, 2, 5});
  ExpectGradient(UpdateOf(some, 4, kByElements), ReferenceOf(some));
  EXPECT_GT(std::abs(-UpdateOf(some, 4, {})[0] - ReferenceOf(some).gradient[0]), 1000 * kBound);
}

TEST(LossWeight, AnUpdateInWhichNothingCountsHasNoGradient) {
  const std::vector<data::Row> batches = MicroBatches({kFeatures}, {0, 0, 0, 0});
  for (const int processes : {1, 2, 4}) {
    EXPECT_EQ(UpdateOf(batches, processes, kByElements), std::vector<float>(kFeatures * kClasses, 0.0f)) << processes;
  }
  // One micro-batch an update divides by its own count.
  EXPECT_EQ(UpdateOf({batches[0]}, 1, kByElements), std::vector<float>(kFeatures * kClasses, 0.0f));
}

TEST(LossWeight, HasTheBitsOfRowsWhereEveryElementCounts) {
  const std::vector<data::Row> batches = MicroBatches({kFeatures}, {kRowsEach, kRowsEach, kRowsEach, kRowsEach});
  for (const int processes : {1, 2, 4}) {
    EXPECT_EQ(UpdateOf(batches, processes, kByElements), UpdateOf(batches, processes, {})) << processes;
  }
}

/// All rows of micro-batches of 8 and 2 rows count. So both have the weight 1, as with kRows.
TEST(LossWeight, IsAShareOfTheElementsOfAMicroBatch) {
  const std::vector<std::int32_t> two = {1, 2};
  const std::vector<data::Row> batches = {
      {Values({kRowsEach, kFeatures}, 1), Tensor::From(Labels(0, kRowsEach), {kRowsEach})},
      {Values({2, kFeatures}, 2), Tensor::From(two, {2})}};
  for (const int processes : {1, 2}) {
    EXPECT_EQ(UpdateOf(batches, processes, kByElements), UpdateOf(batches, processes, {})) << processes;
  }
}

/// Of one update: the loss of a micro-batch is the mean of its own elements.
TEST(LossWeight, RecordsTheMeanOfTheMicroBatch) {
  EXPECT_TRUE(RunGroup(1, [](int) {
    MPC_ASSERT_OK(
        SetAutoParallelContext({.parallel_mode = ParallelMode::kDataParallel, .loss_weight = LossWeight::kElements}));
    Linear network;
    nn::CrossEntropyLoss loss;
    nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1});
    Model model(network, loss, optimizer, {.accumulation_steps = kMicroBatches});
    std::vector<float> losses;
    LambdaCallback keep({.on_train_step_end = [&](RunContext& context) { losses.push_back(context.loss()); }});
    MPC_EXPECT_OK(model.Train(1, Batches(MicroBatches({kFeatures}, kUneven)), {keep}));
    ASSERT_EQ(losses.size(), 4U);
    for (const int counted : {0, 1, 3}) EXPECT_NEAR(losses[static_cast<std::size_t>(counted)], std::log(3.0), 1e-6);
    EXPECT_EQ(losses[2], 0.0f);
  }));
}

enum class UpdateRule { kMomentum, kLamb };

struct Elements {
  Level level;
  UpdateRule rule;
  DType communication_dtype = DType::kF32;
};

/// What a network with every kind of state becomes, with clipping, and an infinity in one micro-batch.
Snapshot TrainByElements(const Elements& setting, int processes) {
  AutoParallelOptions options = kByElements;
  options.communication_dtype = setting.communication_dtype;
  EXPECT_TRUE(RunGroup(
      processes,
      [&](int rank) {
        ConvNorm network;
        nn::CrossEntropyLoss loss;
        nn::Momentum momentum(network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
        nn::Lamb lamb(network.TrainableParams(), {.learning_rate = 0.01});
        nn::Optimizer& optimizer = setting.rule == UpdateRule::kLamb ? static_cast<nn::Optimizer&>(lamb) : momentum;
        Model model(network, loss, optimizer,
                    {.amp_level = setting.level.level,
                     .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 1024, .scale_window = 3}),
                     .amp_dtype = setting.level.dtype,
                     .accumulation_steps = kMicroBatches / processes,
                     .clip_global_norm = 0.5});
        std::vector<data::Row> batches = MicroBatches({2, 6, 6}, kUneven, /*updates=*/4);
        // Its rows are left out, as in every other batch of the third of four updates.
        batches[9] = WithBadValue(batches[9], kInfinity);
        MPC_EXPECT_OK(model.Train(2, Batches(std::move(batches))));
        EXPECT_EQ(model.skipped_steps(), 2);
        Snapshot state = StateOf(model);
        std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("accumulator."); });
        Write(FilePath(absl::StrCat(rank)), state);
      },
      /*killed=*/{}, options));
  Snapshot first = Read(FilePath("0"));
  for (int rank = 1; rank < processes; ++rank) {
    EXPECT_EQ(Differences(first, Read(FilePath(absl::StrCat(rank)))), std::vector<std::string>{}) << rank;
  }
  return first;
}

TEST(LossWeight, HasTheSameBitsInAnyNumberOfProcesses) {
  const std::vector<Elements> settings = {{{"O0", DType::kF32}, UpdateRule::kMomentum},
                                          {{"O2", DType::kF16}, UpdateRule::kLamb},
                                          {{"O2", DType::kF16}, UpdateRule::kMomentum, DType::kF16}};
  for (const Elements& setting : settings) {
    const Snapshot alone = TrainByElements(setting, 1);
    EXPECT_GT(alone.size(), 10U);
    for (const int processes : {2, 4}) {
      EXPECT_EQ(Differences(alone, TrainByElements(setting, processes)), std::vector<std::string>{})
          << processes << " " << setting.level.level;
    }
  }
}

class TokenLoss : public nn::LossBase {
 public:
  MPC_CELL(TokenLoss, loss)
  Tensor Construct(const Tensor& logits, const Tensor& labels) {
    return loss(reshape(logits, {labels.size(), -1}), reshape(labels, {labels.size()}));
  }
  nn::CrossEntropyLoss loss;
};

/// GPT-2-tiny on tokens of which some are padding.
TEST(LossWeight, Gpt2HasTheSameBitsInAnyNumberOfProcesses) {
  const auto train = [](int processes) {
    EXPECT_TRUE(RunGroup(
        processes,
        [&](int rank) {
          models::Gpt2 network(models::Gpt2Config::Tiny());
          TokenLoss loss;
          nn::Momentum momentum(network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
          Model model(network, loss, momentum,
                      {.amp_level = "O2",
                       .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 1024}),
                       .amp_dtype = DType::kF16,
                       .accumulation_steps = kMicroBatches / processes});
          std::vector<data::Row> batches;
          for (std::int32_t i = 0; i < 8; ++i) {
            std::vector<std::int32_t> ids(32), next(32, static_cast<std::int32_t>(kIgnored));
            for (std::int32_t place = 0; place < 32; ++place)
              ids[static_cast<std::size_t>(place)] = (place * 7 + i) % 256;
            for (std::int32_t place = 0; place < 4 * i; ++place) {
              next[static_cast<std::size_t>(place)] = (place * 7 + i + 7) % 256;
            }
            batches.push_back({Tensor::From(ids, {2, 16}), Tensor::From(next, {2, 16})});
          }
          MPC_EXPECT_OK(model.Train(1, Batches(std::move(batches))));
          EXPECT_EQ(model.skipped_steps(), 0);
          Snapshot state = StateOf(model);
          std::erase_if(state, [](const auto& entry) { return entry.first.starts_with("accumulator."); });
          if (rank == 0) Write(FilePath("state"), state);
        },
        /*killed=*/{}, kByElements));
    return Read(FilePath("state"));
  };
  const Snapshot alone = train(1);
  for (const int processes : {2, 4}) EXPECT_EQ(Differences(alone, train(processes)), std::vector<std::string>{});
}

/// Scales by itself, and is called without a Model.
class ScaledStep : public nn::TrainingStep {
 public:
  MPC_CELL(ScaledStep, network)
  ScaledStep(Linear& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}
  Tensor Construct(Tensor x, Tensor labels) {
    const Tensor loss = loss_(network(x), labels);
    scaler.Minimize(optimizer, ops::Backward(scaler.Scale(loss), optimizer.parameters()));
    return loss;
  }
  Linear& network;
  nn::Optimizer& optimizer;
  amp::AmpScaler scaler;

 private:
  nn::CrossEntropyLoss loss_;
};

TEST(LossWeight, HoldsInStepsThatScaleByThemselves) {
  const std::vector<data::Row> batches = MicroBatches({kFeatures}, kUneven);
  const Reference reference = ReferenceOf(batches);
  EXPECT_TRUE(RunGroup(
      kMicroBatches,
      [&](int rank) {
        Linear network;
        nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1});
        ScaledStep step(network, optimizer);
        const data::Row& own = batches[static_cast<std::size_t>(rank)];
        MPC_EXPECT_OK(step(own[0], own[1]).status());
        ExpectGradient(network.weight.Value()->ToFloats(), reference);
      },
      /*killed=*/{}, kByElements));
}

class TwoCounts : public nn::LossBase {
 public:
  MPC_CELL(TwoCounts, first, second)
  Tensor Construct(const Tensor& logits, const Tensor& labels) {
    return first(logits, labels) + second(logits, labels) * 0.5;
  }
  nn::CrossEntropyLoss first;
  nn::CrossEntropyLoss second{{.ignore_index = 0}};
};

TEST(LossWeight, RefusesTwoCountsInOneLoss) {
  EXPECT_TRUE(RunGroup(
      1,
      [](int) {
        Linear network;
        TwoCounts loss;
        nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1});
        Model model(network, loss, optimizer, {.accumulation_steps = 2});
        const absl::Status status = model.Train(1, Batches(MicroBatches({kFeatures}, kUneven)));
        EXPECT_NE(status.message().find("loss_weight = kElements takes one of them in a loss"), std::string::npos)
            << status;
      },
      /*killed=*/{}, kByElements));
}

/// A loss of the user's own, or of a model, says what it counts by MeanOfCounted.
TEST(LossWeight, HoldsForTheLossOfMaskedTokens) {
  const std::vector<data::Row> batches = MicroBatches({kFeatures}, kUneven);
  EXPECT_TRUE(RunGroup(
      2,
      [&](int rank) {
        Linear network;
        models::MaskedTokenLoss loss;
        nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1});
        Model model(network, loss, optimizer, {.accumulation_steps = 2});
        MPC_EXPECT_OK(model.Train(1, Batches(batches)));
        ExpectGradient(network.weight.Value()->ToFloats(), ReferenceOf(batches));
      },
      /*killed=*/{}, kByElements));
}

/// Leaves elements out on batches of several rows alone.
class WeighedByRows : public nn::TrainingStep {
 public:
  MPC_CELL(WeighedByRows, network, cross_entropy)
  Tensor Construct(Tensor x, Tensor label) {
    const Tensor logits = network(x);
    const bool is_mean = x.shape()[0] == 1;
    const Tensor loss =
        is_mean ? reduce_mean(logits) + reduce_sum(cast(label, DType::kF32)) : cross_entropy(logits, label);
    return ops::Depend(loss, optimizer(ops::Backward(loss, optimizer.parameters())));
  }
  Linear network;
  nn::CrossEntropyLoss cross_entropy;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1}};
};

// A weight that begins inside an update would stand for the batches before it, too.
TEST(LossWeight, BatchesOfAnUpdateAllCountTheirElementsOrNoneDoes) {
  const data::Row one = {Values({1, kFeatures}, 1), Tensor::From(std::vector<std::int32_t>{0}, {1})};
  const data::Row two = {Values({2, kFeatures}, 2), Tensor::From(std::vector<std::int32_t>{0, 1}, {2})};
  EXPECT_TRUE(RunGroup(
      1,
      [&](int) {
        WeighedByRows same, other;
        MPC_EXPECT_OK(Model(same, {.accumulation_steps = 2}).Train(1, Batches({two, two})));
        const absl::Status status = Model(other, {.accumulation_steps = 2}).Train(1, Batches({one, two}));
        EXPECT_NE(
            status.message().find("batch 2 of 2 of the step has losses that leave elements out (loss_weight), and "
                                  "those before it have losses that count all elements"),
            std::string::npos)
            << status;
      },
      /*killed=*/{}, kByElements));
}

}  // namespace
}  // namespace mpc::testing
